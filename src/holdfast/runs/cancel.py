"""Cancel: end a queued run, or ask a running run to stop."""

from __future__ import annotations

from holdfast.runs import audit, events, ready
from holdfast.runs.finish import end_unstarted
from holdfast.runs.outcomes import Cancelled
from holdfast.runs.waiting import take_waiting
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.support.errors import RunNotFound
from holdfast.values.events import Event


def cancel_by_hand(tx: Transaction, run_id: str, *, reason: str, by: str | None = None, bulk: str | None = None) -> str:
    """Cancel a run, record the operator in the audit log, and return the run's state afterwards."""
    json_text.check_text(reason, what="reason")
    state = cancel_run(tx, run_id, reason=reason)
    audit.record(tx, by, "cancel", run_id=run_id, reason=reason, state=state, bulk=bulk)
    return state


def cancel_run(tx: Transaction, run_id: str, *, reason: str) -> str:
    """End a queued run, or ask a running run to stop; return the run's state afterwards.

    The run may change tables during the search, so search each table in turn until one has the run.
    """
    for _ in range(100):
        if removed := take_waiting(tx, [run_id]) or ready.remove(tx, [run_id]):
            end_unstarted(tx, {removed[0]: Cancelled(reason)})
            return "cancelled"
        if tx.all("request_cancels", ids=[run_id], reason=reason, now=tx.now):
            events.record(tx, [Event(run_id=run_id, kind="CANCEL_REQUESTED", data={"reason": reason})])
            tx.notify("cancels")
            return "running"
        if ended := tx.one("find_outcomes", ids=[run_id]):
            return str(ended["state"])
        if not tx.all("find_runs", ids=[run_id]):
            raise RunNotFound(f"there is no run {run_id}")
    raise AssertionError(f"run {run_id} is in no state table; run 'holdfast verify' for details")
