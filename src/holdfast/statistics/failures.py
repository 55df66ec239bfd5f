"""Failures: the newest ones, grouped by similar errors."""

from __future__ import annotations

import re
from collections import defaultdict

from holdfast.store.transaction import Row, Transaction
from holdfast.values.runs import last_line
from holdfast.values.statistics import FailureGroup

NEWEST = 1_000
ERROR = 600  # how many characters are read from the end of an error


def groups(tx: Transaction, *, limit: int) -> list[FailureGroup]:
    """Group the newest 1,000 failures by job, failure type and normalised message, largest group first."""
    similar: dict[tuple[str, str | None, str], list[Row]] = defaultdict(list)
    for row in tx.all("find_failures", tail=ERROR, limit=NEWEST):
        similar[row["job"], row["failure_type"], normalise(row["error"] or "")].append(row)
    failure_groups = [
        FailureGroup(
            job=job,
            failure_type=failure_type,
            message=message,
            runs=len(rows),
            first_at=rows[-1]["finished_at"],
            last_at=rows[0]["finished_at"],
            example=rows[0]["run_id"],
        )
        for (job, failure_type, message), rows in similar.items()
    ]
    return sorted(failure_groups, key=lambda group: (-group.runs, -group.last_at.timestamp(), group.job))[:limit]


def normalise(error: str) -> str:
    """Return the last line of an error with its ids, addresses and numbers replaced, as they differ between runs."""
    text = last_line(error)
    for pattern, instead in _VARIABLE:
        text = pattern.sub(instead, text)
    return text[:300]


_VARIABLE = (
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b[0-9][0-9a-hjkmnp-tv-z]{25}\b"), "<id>"),
    (re.compile(r"\b(?=[a-f]*[0-9])[0-9a-f]{12,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "#"),
)
