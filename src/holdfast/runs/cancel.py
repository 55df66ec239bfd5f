"""Cancel: end a run that has not started, or ask a running one to stop."""

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
    """End a run or ask it to stop, and write down who did; its state afterwards."""
    json_text.check_text(reason, what="reason")
    state = cancel_run(tx, run_id, reason=reason)
    audit.record(tx, by, "cancel", run_id=run_id, reason=reason, state=state, bulk=bulk)
    return state


def cancel_run(tx: Transaction, run_id: str, *, reason: str) -> str:
    """End a run that has not started, ask a running one to stop; its state afterwards.

    A run may move while we look for it, so we go round its places until we touch it or see its outcome.
    """
    for _ in range(100):
        if found := take_waiting(tx, [run_id]) or ready.remove(tx, [run_id]):
            end_unstarted(tx, {found[0]: Cancelled(reason)})
            return "cancelled"
        if tx.all("request_cancels", ids=[run_id], reason=reason, now=tx.now):
            events.record(tx, [Event(run_id=run_id, kind="CANCEL_REQUESTED", data={"reason": reason})])
            tx.notify("cancels")
            return "running"
        if ended := tx.one("find_outcomes", ids=[run_id]):
            return str(ended["state"])
        if not tx.all("find_runs", ids=[run_id]):
            raise RunNotFound(f"there is no run {run_id}")
    raise AssertionError(f"run {run_id} is in no place; 'holdfast verify' says more")
