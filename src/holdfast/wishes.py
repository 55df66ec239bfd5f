"""Wishes: a build that a run needs, whether it exists already or not.

    wish ──insert──▶ new: its run is made                        whoever inserts first makes it
         ──duplicate, fetch──▶ being made, or ready              shared
                           ──▶ ended badly, stale, or gone       replaced, by whoever still finds the run that it saw
                           ──▶ cancelled after the wish          not replaced: the cancel counts for this wish

The row (job, scope, fingerprint) decides who makes a build; nothing is looked at first. In a caller's transaction a
wish stays an ask: an orchestrator gets or creates its build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from holdfast import codec, policies
from holdfast.policies import Policy
from holdfast.store.transaction import Row, Transaction

TURNS = 100


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Wish:
    """A build by its identity, and what a run that makes it would be; it may stand in `after` beside runs."""

    job: str
    scope: str
    fingerprint: str
    queue: str = field(compare=False, repr=False)
    priority: int = field(compare=False, repr=False)
    args: str = field(compare=False, repr=False)
    policy: Policy = field(compare=False, repr=False)
    tags: str = field(compare=False, repr=False)

    @property
    def key(self) -> str:
        """What only one run of a build may hold: it is made in one place at a time, an outdated making included."""
        return key_of(self.job, self.scope, self.fingerprint)

    def to_json(self) -> str:
        """What a run would be, for whoever gets or creates the build later."""
        told = {"queue": self.queue, "priority": self.priority, "args": self.args, "tags": self.tags}
        return codec.compact(told | {"policy": self.policy.to_json()})

    @classmethod
    def of(cls, row: Row) -> Wish:
        told = codec.load(row["submission"])
        return cls(
            job=row["job"],
            scope=row["scope"],
            fingerprint=row["fingerprint"],
            **told | {"policy": policies.load(told["policy"])},
        )


@dataclass(frozen=True, slots=True)
class Making:
    """A run that is to make a build; `again_of` is the one that it replaces."""

    wish: Wish
    run_id: str
    again_of: str | None


@dataclass(frozen=True, slots=True)
class Cancel:
    """A run of a build that was cancelled, and when it ended."""

    run_id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """The run of a build, and whether it has already made it.

    `cancelled` is the last cancel of this build. A wish made before it gets the cancelled run: see `for_wish_at`.
    """

    run_id: str
    met: bool
    cancelled: Cancel | None = None

    def for_wish_at(self, at: datetime) -> Found:
        """What a wish of that moment gets: a build that was cancelled afterwards stays cancelled for it."""
        if self.cancelled is None or self.cancelled.at <= at:
            return self
        return Found(self.cancelled.run_id, False)


Make: TypeAlias = Callable[[Transaction, Sequence[Making]], None]


def settle(
    tx: Transaction,
    wishes: Iterable[Wish],
    *,
    make: Make,
    offered: Mapping[Wish, str] | None = None,
    wished_at: Mapping[Wish, datetime] | None = None,
) -> dict[Wish, Found]:
    """Get or create the builds of these wishes. `make` submits new runs; `offered` are ids for them to use.

    `wished_at` is when each was wished for, if not now: a build that was cancelled since then is not made once more.
    """
    left, found = sorted(set(wishes)), dict[Wish, Found]()
    for _ in range(TURNS):
        if not left:
            return found
        found |= _insert(tx, left, make, offered or {})
        found |= _fetch(tx, [wish for wish in left if wish not in found], make, wished_at or {})
        left = [wish for wish in left if wish not in found]
    raise AssertionError(f"build {left[0]} changed {TURNS} times while we asked for it")


def key_of(job: str, scope: str, fingerprint: str) -> str:
    """The key that all runs of one build share."""
    return f"build:{job}/{codec.digest(job, scope, fingerprint)}"


def replace(tx: Transaction, makings: Sequence[Making]) -> list[Making]:
    """Those of these runs that took the place of the one they repeat; the others came too late."""
    rows = [
        _row(making.wish) | {"run_id": making.run_id, "old_id": making.again_of, "since_at": tx.now}
        for making in makings
    ]
    won = {_identity(row) for row in tx.all("replace_builds", rows=rows)} if rows else set()
    return [making for making in makings if _identity(_row(making.wish)) in won]


def _insert(tx: Transaction, wishes: Sequence[Wish], make: Make, offered: Mapping[Wish, str]) -> dict[Wish, Found]:
    ids = {wish: offered.get(wish) or tx.new_id() for wish in wishes}
    rows = [_row(wish) | {"run_id": ids[wish], "since_at": tx.now} for wish in wishes]
    inserted = {_identity(row) for row in tx.all("insert_builds", rows=rows)}
    return _made(tx, [Making(wish, ids[wish], None) for wish in wishes if _identity(_row(wish)) in inserted], make)


def _fetch(
    tx: Transaction, wishes: Sequence[Wish], make: Make, wished_at: Mapping[Wish, datetime]
) -> dict[Wish, Found]:
    if not wishes:
        return {}
    rows = {_identity(row): row for row in tx.all("find_builds", rows=[_row(wish) for wish in wishes])}
    there = [(wish, rows[_identity(_row(wish))]) for wish in wishes if _identity(_row(wish)) in rows]
    kept = [(wish, row) for wish, row in there if _usable(row) or _cancelled_since(row, wished_at.get(wish))]
    found = {wish: Found(row["run_id"], row["state"] == "succeeded", _cancel(row)) for wish, row in kept}
    again = [Making(wish, tx.new_id(), row["run_id"]) for wish, row in there if wish not in found]
    made = _made(tx, replace(tx, again), make)
    cancels = {wish: _cancel(row) for wish, row in there}
    return found | {wish: Found(one.run_id, one.met, cancels[wish]) for wish, one in made.items()}


def _cancelled_since(row: Row, wished_at: datetime | None) -> bool:
    """It was cancelled after the wish was made."""
    return wished_at is not None and row["cancelled_at"] is not None and row["cancelled_at"] > wished_at


def _cancel(row: Row) -> Cancel | None:
    return None if row["cancelled_id"] is None else Cancel(row["cancelled_id"], row["cancelled_at"])


def _usable(row: Row) -> bool:
    """It is being made, or was made and is still good."""
    return row["known"] is not None and row["stale_at"] is None and row["state"] in (None, "succeeded")


def _made(tx: Transaction, makings: Sequence[Making], make: Make) -> dict[Wish, Found]:
    if makings:
        make(tx, makings)
    return {making.wish: Found(making.run_id, False) for making in makings}


def _identity(row: Row) -> tuple[str, str, str]:
    return row["job"], row["scope"], row["fingerprint"]


def _row(wish: Wish) -> Row:
    return {"job": wish.job, "scope": wish.scope, "fingerprint": wish.fingerprint}
