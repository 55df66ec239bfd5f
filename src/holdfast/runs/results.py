"""Results: what runs that have ended left behind, for whoever waited for them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.transaction import Transaction
from holdfast.values.runs import Result


def of(tx: Transaction, run_ids: Sequence[str]) -> list[Result]:
    """The results of these runs, in this order; a run that has not ended has none and is left out."""
    if not run_ids:
        return []
    found = {row["run_id"]: Result(**row) for row in tx.all("find_results", ids=sorted(set(run_ids)))}
    return [found[run_id] for run_id in run_ids if run_id in found]
