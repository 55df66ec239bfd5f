"""Results: what runs that have ended left behind, for whoever waited for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast import codec
from holdfast.store.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a run ended; `result` is JSON text, and None unless it succeeded. `job` is None if its run is not there."""

    run_id: str
    job: str | None
    state: str
    failure_type: str | None
    error: str | None
    result: str | None

    @property
    def value(self) -> Any:
        """The result as plain JSON gives it back."""
        return None if self.result is None else codec.load(self.result)


def of(tx: Transaction, run_ids: Sequence[str]) -> list[Result]:
    """The results of these runs, in this order; a run that has not ended has none and is left out."""
    if not run_ids:
        return []
    found = {row["run_id"]: Result(**row) for row in tx.all("find_results", ids=sorted(set(run_ids)))}
    return [found[run_id] for run_id in run_ids if run_id in found]
