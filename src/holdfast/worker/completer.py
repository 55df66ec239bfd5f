"""Doubts: what a worker does about a commit whose reply never came, and about a run that can't be written."""

from __future__ import annotations

from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import leases_of
from holdfast.runs.outcomes import Release
from holdfast.store.transaction import Transaction
from holdfast.worker.in_flight import InFlight


def release_unknown(tx: Transaction, hand: InFlight, lost: set[tuple[str, int]], *, holder: str) -> int:
    """A connection that broke may have taken a claim's reply with it: what we hold unknowingly never started.

    `lost` are the attempts that did start and are given up; they are forgotten once no lease names them.
    """
    held = {(lease.run_id, lease.attempt): lease for lease in leases_of(tx, holder)}
    lost.intersection_update(held)
    unknown = [lease for known, lease in held.items() if hand.get(*known) is None and known not in lost]
    finish_runs(tx, [(lease, Release("the reply to its claim was lost")) for lease in unknown], holder=holder)
    return len(unknown)


def refused(error: Exception) -> str:
    """Why an outcome could not be written, in words that can be."""
    return f"the database refused the outcome: {type(error).__name__}: {error}"[:2000].replace("\x00", "\\0")
