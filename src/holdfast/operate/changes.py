"""Changes: cheap markers that differ when there is something new to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.store.transaction import Transaction
from holdfast.values.events import ChangeMarkers


def run_markers(tx: Transaction, run_ids: Sequence[str]) -> Mapping[str, str]:
    """A marker for each of these runs that exists. It differs whenever the run may have new events."""
    rows = tx.all("find_run_markers", ids=list(dict.fromkeys(run_ids))) if run_ids else []
    return {row["id"]: f"{row['place']} {row['claim']} {row['event']} {row['step']}" for row in rows}


def change_markers(tx: Transaction) -> ChangeMarkers:
    """Markers that differ whenever any run, or any worker, has changed."""
    row = tx.one("find_change_markers")
    assert row is not None
    workers = f"{row.pop('workers')} {row.pop('last_seen_at')}"
    return ChangeMarkers(runs=" ".join(str(value) for value in row.values()), workers=workers)
