"""Admissions: which of some submissions become runs, judged before anything of them is written.

A bounded queue that is full refuses; a submission that is to be the only one of its kind may be given the run that is
there. Stages, segments and children, which others wait for, are counted and never refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from holdfast import isolations, seats, uniques
from holdfast.errors import QueueFull
from holdfast.seats import Seat
from holdfast.store.transaction import Transaction
from holdfast.uniques import Only

REFUSABLE = (None, "pipeline", "slot")


class Asking(Protocol):
    """What of a submission matters here."""

    @property
    def run_id(self) -> str: ...
    @property
    def job(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def parent_id(self) -> str | None: ...
    @property
    def unique(self) -> str | None: ...
    @property
    def digest(self) -> str: ...


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


def judge(tx: Transaction, asking: Sequence[Asking], *, repeated: Callable[[], set[str]]) -> Admission:
    """Who may come in. `repeated` says which are there already: they need no seat."""
    onlies = _onlies(asking)
    if onlies:
        isolations.require_latest(tx, "to submit with unique")
    # In a caller's transaction what the database refuses could not be done again.
    counted = not tx.owned or seats.expected(tx, [one.queue for one in asking])
    admission = Admission(counted, seats.bounds(tx, [seat_of(one) for one in asking]) if asking and counted else {})
    admission.same = uniques.same(onlies)
    if admission.bounded:
        admission.given = uniques.find(tx, onlies)
        there = repeated()
        wanting = [one for one in asking if admission.admits(one.run_id) and one.run_id not in there]
        admission.refused = seats.refuse(tx, admission.bounded, [seat_of(one) for one in wanting])
    return admission


def settle(tx: Transaction, asking: Sequence[Asking], admission: Admission) -> None:
    """Be the only ones of their kind, those who asked for it and were not refused."""
    left = [only for only in _onlies(asking) if admission.admits(only.run_id)]
    admission.given |= uniques.take(tx, left) if left else {}


def seat_of(one: Asking) -> Seat:
    return Seat(one.run_id, one.queue, refusable=one.kind in REFUSABLE and one.parent_id is None)


def _onlies(asking: Sequence[Asking]) -> list[Only]:
    return [
        Only(one.run_id, one.job, one.digest, running=one.unique == "active")
        for one in asking
        if one.unique is not None
    ]
