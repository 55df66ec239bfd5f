"""Failures: the newest ones in groups that look alike."""

from __future__ import annotations

import re
from collections import defaultdict

from holdfast.store.transaction import Row, Transaction
from holdfast.values.runs import last_line
from holdfast.values.statistics import FailureGroup

NEWEST = 1_000
ERROR = 600  # characters of an error's end that are read


def groups(tx: Transaction, *, limit: int) -> list[FailureGroup]:
    """The newest 1,000 failures in groups, the largest first."""
    alikes: dict[tuple[str, str | None, str], list[Row]] = defaultdict(list)
    for row in tx.all("find_failures", tail=ERROR, limit=NEWEST):
        alikes[row["job"], row["failure_type"], alike(row["error"] or "")].append(row)
    found = [
        FailureGroup(
            job=job,
            failure_type=failure_type,
            gist=gist,
            runs=len(rows),
            first_at=rows[-1]["finished_at"],
            last_at=rows[0]["finished_at"],
            example=rows[0]["run_id"],
        )
        for (job, failure_type, gist), rows in alikes.items()
    ]
    return sorted(found, key=lambda group: (-group.runs, -group.last_at.timestamp(), group.job))[:limit]


def alike(error: str) -> str:
    """The last line of an error with what differs from run to run made alike: ids, addresses, numbers."""
    text = last_line(error)
    for pattern, instead in _DIFFERENT:
        text = pattern.sub(instead, text)
    return text[:300]


_DIFFERENT = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b[0-9][0-9a-hjkmnp-tv-z]{25}\b"), "<id>"),
    (re.compile(r"\b(?=[a-f]*[0-9])[0-9a-f]{12,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "#"),
)
