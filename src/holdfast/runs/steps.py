"""Steps: named parts of a run whose results are stored, so that a later attempt does not execute them again.

finished ──insert──▶ steps ──forget──▶ forgotten      the next step with this name is executed again
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.runs import events
from holdfast.runs.lease import Lease, require_lease
from holdfast.store.transaction import Transaction
from holdfast.values.events import Event
from holdfast.values.runs import Step, StepTimes


def insert(tx: Transaction, finished: Sequence[tuple[str, Step]]) -> None:
    """Store finished steps, each with the id of its run. The caller has locked their leases in this transaction."""
    rows = [{name: getattr(step, name) for name in Step.__slots__} | {"run_id": run_id} for run_id, step in finished]
    if rows:
        tx.put("insert_steps", rows=rows)


def forget(tx: Transaction, lease: Lease, name: str) -> bool:
    """Forget a step and record an event; return False if the run has none. Raise LeaseLost if the lease is gone."""
    require_lease(tx, lease)
    step = tx.one("delete_step", run_id=lease.run_id, name=name)
    if step is None:
        return False
    tx.run("insert_forgotten_step", run_id=lease.run_id, **step)
    events.record(tx, [Event(run_id=lease.run_id, kind="STEP_FORGOTTEN", claim=lease.claim, data={"step": name})])
    return True


def done(tx: Transaction, run_id: str, *, after: tuple[int, int] = (0, 0), limit: int) -> list[StepTimes]:
    """Return the steps of a run after this claim and number, in order, including forgotten ones."""
    claim, number = after
    rows = tx.all("find_steps_after", run_id=run_id, claim=claim, number=number, limit=limit)
    return [StepTimes(**row | {"forgotten": bool(row["forgotten"])}) for row in rows]


def of(tx: Transaction, run_id: str) -> list[Step]:
    """Return the stored steps of a run, without forgotten ones."""
    return [Step(**row) for row in tx.all("find_steps", run_id=run_id)]
