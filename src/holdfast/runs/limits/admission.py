"""Admission: which of some submissions become runs, judged before anything of them is written.

A bounded queue that is full refuses; a submission that is to be the only one of its kind may be given the run that is
there. Stages, segments and children, which others wait for, are counted and never refused.
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
    """`bounded` are the bounds that count, if they were `counted`; `refused` and `given` say by run why it is none, or
    which it is."""

    counted: bool
    bounded: Mapping[str, int]
    refused: dict[str, QueueFull] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    same: dict[str, str] = field(default_factory=dict)

    def admits(self, run_id: str) -> bool:
        return not (run_id in self.refused or run_id in self.given or run_id in self.same)


def judge_admission(tx: Transaction, asking: Sequence[Submission], *, repeated: Callable[[], set[str]]) -> Admission:
    """Who may come in. `repeated` says which are there already: they need no seat."""
    onlies = _onlies(asking)
    if onlies:
        require_latest(tx, "to submit with unique")
    # In a caller's transaction what the database refuses could not be done again.
    counted = not tx.owned or capacity_expected(tx, [one.queue for one in asking])
    admission = Admission(
        counted, capacity.bounds(tx, [capacity_request_of(one) for one in asking]) if asking and counted else {}
    )
    admission.same = find_same(onlies)
    if admission.bounded:
        admission.given = find_unique(tx, onlies)
        there = repeated()
        wanting = [one for one in asking if admission.admits(one.run_id) and one.run_id not in there]
        admission.refused = capacity.refuse(tx, admission.bounded, [capacity_request_of(one) for one in wanting])
    return admission


def settle_admission(tx: Transaction, asking: Sequence[Submission], admission: Admission) -> None:
    """Be the only ones of their kind, those who asked for it and were not refused."""
    left = [only for only in _onlies(asking) if admission.admits(only.run_id)]
    admission.given |= take_unique(tx, left) if left else {}


def capacity_request_of(one: Submission) -> CapacityRequest:
    return CapacityRequest(one.run_id, one.queue, refusable=one.kind in REFUSABLE and one.parent_id is None)


def _onlies(asking: Sequence[Submission]) -> list[UniqueClaim]:
    return [
        UniqueClaim(one.run_id, one.job, one.digest, running=one.unique == "active")
        for one in asking
        if one.unique is not None
    ]


def capacity_expected(tx: Transaction, queues: Iterable[str]) -> bool:
    """Whether to count, so that no submission to a queue without a bound waits for an answer that it does not need.

    Where a bound is met that no one here knew of, the database refuses what was not counted, and it is done again.
    """
    return tx.again or not tx.bounded.isdisjoint({EVERY_QUEUE, *queues})
