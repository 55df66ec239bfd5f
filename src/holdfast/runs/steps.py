"""Steps: parts of a run that are remembered, so that a later attempt does not do them again.

done ──remember──▶ steps ──forget──▶ forgotten      the next use of its name does it again
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.runs import events
from holdfast.runs.lease import Lease, require_lease
from holdfast.store.transaction import Transaction
from holdfast.values.events import Event
from holdfast.values.runs import Step, StepTimes


def insert(tx: Transaction, finished: Sequence[tuple[str, Step]]) -> None:
    """Keep the results of finished steps, each with its run; the caller has guarded the leases in this transaction."""
    rows = [{name: getattr(step, name) for name in Step.__slots__} | {"run_id": run_id} for run_id, step in finished]
    if rows:
        tx.put("insert_steps", rows=rows)


def forget(tx: Transaction, lease: Lease, name: str) -> bool:
    """Forget a step and record that, False if the run remembers no such step, or LeaseLost."""
    require_lease(tx, lease)
    step = tx.one("delete_step", run_id=lease.run_id, name=name)
    if step is None:
        return False
    tx.run("insert_forgotten", run_id=lease.run_id, **step)
    told = Event(run_id=lease.run_id, kind="STEP_FORGOTTEN", attempt=lease.attempt, data={"step": name})
    events.record(tx, [told])
    return True


def done(tx: Transaction, run_id: str, *, after: tuple[int, int] = (0, 0), limit: int) -> list[StepTimes]:
    """The steps that a run did after that attempt and number, in order, be they forgotten or not."""
    attempt, number = after
    rows = tx.all("find_told_steps", run_id=run_id, attempt=attempt, number=number, limit=limit)
    return [StepTimes(**row | {"forgotten": bool(row["forgotten"])}) for row in rows]


def of(tx: Transaction, run_id: str) -> list[Step]:
    """The steps that a run remembers."""
    return [Step(**row) for row in tx.all("find_steps", run_id=run_id)]
