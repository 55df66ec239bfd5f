"""Admission: decide which submissions create runs, before any of them is written.

A full queue refuses submissions, and a submission with `unique` may get an existing run. Stages, segments and children
use up capacity but are never refused, because other runs wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.runs.limits import capacity
from holdfast.runs.limits.capacity import CapacityRequest
from holdfast.runs.limits.unique import UniqueClaim, find_same, find_unique, take_unique
from holdfast.runs.submission import Submission
from holdfast.store.caller_transaction import require_latest
from holdfast.store.transaction import Transaction
from holdfast.support.errors import QueueFull
from holdfast.values.queues import EVERY_QUEUE

REFUSABLE = (None, "pipeline", "slot")


@dataclass(slots=True)
class Admission:
    """The decision for one batch of submissions.

    counted   whether capacity was checked
    bounded   the capacity of the bounded queues concerned
    refused   the submissions that a full queue refused
    given     the submissions that get an existing run
    same      the submissions that get the run of another submission of the batch
    """

    counted: bool
    bounded: Mapping[str, int]
    refused: dict[str, QueueFull] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)

    def admits(self, run_id: str) -> bool:
        return not (run_id in self.refused or run_id in self.given or run_id in self.same)


def check_admission(
    tx: Transaction, submissions: Sequence[Submission], *, repeated: Callable[[], set[str]]
) -> Admission:
    """Decide which submissions create runs. `repeated` returns those that already have a run and need no capacity."""
    claims = _unique_claims(submissions)
    if claims:
        require_latest(tx, "to submit with unique")
    # A caller transaction can't be repeated after the database has refused an insert, so always count there.
    counted = not tx.owned or capacity_expected(tx, [one.queue for one in submissions])
    admission = Admission(
        counted,
        capacity.bounds(tx, [capacity_request_of(one) for one in submissions]) if submissions and counted else {},
    )
    admission.same = find_same(claims)
    if admission.bounded:
        admission.given = find_unique(tx, claims)
        existing = repeated()
        new = [one for one in submissions if admission.admits(one.run_id) and one.run_id not in existing]
        admission.refused = capacity.refuse(tx, admission.bounded, [capacity_request_of(one) for one in new])
    return admission


def register_unique(tx: Transaction, submissions: Sequence[Submission], admission: Admission) -> None:
    """Register the admitted submissions with `unique`. Duplicates get the existing run."""
    left = [claim for claim in _unique_claims(submissions) if admission.admits(claim.run_id)]
    admission.given |= take_unique(tx, left) if left else {}


def capacity_request_of(one: Submission) -> CapacityRequest:
    return CapacityRequest(one.run_id, one.queue, refusable=one.kind in REFUSABLE and one.parent_id is None)


def _unique_claims(submissions: Sequence[Submission]) -> list[UniqueClaim]:
    return [
        UniqueClaim(one.run_id, one.job, one.digest, running=one.unique == "active")
        for one in submissions
        if one.unique is not None
    ]


def capacity_expected(tx: Transaction, queues: Iterable[str]) -> bool:
    """Return whether one of these queues is known to be bounded. Submissions to other queues skip a query.

    If a queue is bounded and this process does not know it yet, the database refuses the insert, and the transaction is
    repeated with `again` set.
    """
    return tx.again or not tx.bounded.isdisjoint({EVERY_QUEUE, *queues})
