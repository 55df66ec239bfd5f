"""Changes: cheap markers that change when there is something new to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.store.transaction import Transaction
from holdfast.values.events import ChangeMarkers


def run_markers(tx: Transaction, run_ids: Sequence[str]) -> Mapping[str, str]:
    """Return a marker for each of these runs that exists. It changes whenever the run may have new events."""
    rows = tx.all("find_run_markers", ids=list(dict.fromkeys(run_ids))) if run_ids else []
    return {row["id"]: f"{row['place']} {row['claim']} {row['event']} {row['step']}" for row in rows}


def change_markers(tx: Transaction) -> ChangeMarkers:
    """Return a marker that changes with any run, and one that changes with any worker."""
    row = tx.one("find_change_markers")
    assert row is not None
    workers = f"{row.pop('workers')} {row.pop('last_seen_at')}"
    return ChangeMarkers(runs=" ".join(str(value) for value in row.values()), workers=workers)
