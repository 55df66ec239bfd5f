"""Build once: get or create the build that a run needs. A wish names one, whether it exists already or not.

    wish ──insert──▶ new: its run is made                        whoever inserts first makes it
         ──duplicate, fetch──▶ being made, or ready              shared
                           ──▶ ended badly, stale, or gone       replaced, by whoever still finds the run that it saw
                           ──▶ cancelled after the wish          not replaced: the cancel counts for this wish

The row (job, scope, fingerprint) decides who makes a build; nothing is looked at first. In a caller's transaction a
wish stays an ask: an orchestrator gets or creates its build.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from holdfast.store.transaction import Row, Transaction
from holdfast.values.builds import Wish

TURNS = 100


@dataclass(frozen=True, slots=True)
class BuildRun:
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
class BuildMatch:
    """The run of a build, and whether it has already made it.

    `cancelled` is the last cancel of this build. A wish made before it gets the cancelled run: see `for_wish_at`.
    """

    run_id: str
    met: bool
    cancelled: Cancel | None = None

    def for_wish_at(self, at: datetime) -> BuildMatch:
        """What a wish of that moment gets: a build that was cancelled afterwards stays cancelled for it."""
        if self.cancelled is None or self.cancelled.at <= at:
            return self
        return BuildMatch(self.cancelled.run_id, False)


Make: TypeAlias = Callable[[Transaction, Sequence[BuildRun]], None]


def get_or_create(
    tx: Transaction,
    wishes: Iterable[Wish],
    *,
    make: Make,
    offered: Mapping[Wish, str] | None = None,
    wished_at: Mapping[Wish, datetime] | None = None,
) -> dict[Wish, BuildMatch]:
    """Get or create the builds of these wishes. `make` submits new runs; `offered` are ids for them to use.

    `wished_at` is when each was wished for, if not now: a build that was cancelled since then is not made once more.
    """
    left, found = sorted(set(wishes)), dict[Wish, BuildMatch]()
    for _ in range(TURNS):
        if not left:
            return found
        found |= _insert(tx, left, make, offered or {})
        found |= _fetch(tx, [wish for wish in left if wish not in found], make, wished_at or {})
        left = [wish for wish in left if wish not in found]
    raise AssertionError(f"build {left[0]} changed {TURNS} times while we asked for it")


def replace_builds(tx: Transaction, makings: Sequence[BuildRun]) -> list[BuildRun]:
    """Those of these runs that took the place of the one they repeat; the others came too late."""
    rows = [
        _row(making.wish) | {"run_id": making.run_id, "old_id": making.again_of, "since_at": tx.now}
        for making in makings
    ]
    won = {_identity(row) for row in tx.all("replace_builds", rows=rows)} if rows else set()
    return [making for making in makings if _identity(_row(making.wish)) in won]


def _insert(tx: Transaction, wishes: Sequence[Wish], make: Make, offered: Mapping[Wish, str]) -> dict[Wish, BuildMatch]:
    ids = {wish: offered.get(wish) or tx.new_id() for wish in wishes}
    rows = [_row(wish) | {"run_id": ids[wish], "since_at": tx.now} for wish in wishes]
    inserted = {_identity(row) for row in tx.all("insert_builds", rows=rows)}
    return _made(tx, [BuildRun(wish, ids[wish], None) for wish in wishes if _identity(_row(wish)) in inserted], make)


def _fetch(
    tx: Transaction, wishes: Sequence[Wish], make: Make, wished_at: Mapping[Wish, datetime]
) -> dict[Wish, BuildMatch]:
    if not wishes:
        return {}
    rows = {_identity(row): row for row in tx.all("find_builds", rows=[_row(wish) for wish in wishes])}
    there = [(wish, rows[_identity(_row(wish))]) for wish in wishes if _identity(_row(wish)) in rows]
    kept = [(wish, row) for wish, row in there if _usable(row) or _cancelled_since(row, wished_at.get(wish))]
    found = {wish: BuildMatch(row["run_id"], row["state"] == "succeeded", _cancel(row)) for wish, row in kept}
    again = [BuildRun(wish, tx.new_id(), row["run_id"]) for wish, row in there if wish not in found]
    made = _made(tx, replace_builds(tx, again), make)
    cancels = {wish: _cancel(row) for wish, row in there}
    return found | {wish: BuildMatch(one.run_id, one.met, cancels[wish]) for wish, one in made.items()}


def _cancelled_since(row: Row, wished_at: datetime | None) -> bool:
    """It was cancelled after the wish was made."""
    return wished_at is not None and row["cancelled_at"] is not None and row["cancelled_at"] > wished_at


def _cancel(row: Row) -> Cancel | None:
    return None if row["cancelled_id"] is None else Cancel(row["cancelled_id"], row["cancelled_at"])


def _usable(row: Row) -> bool:
    """It is being made, or was made and is still good."""
    return row["known"] is not None and row["stale_at"] is None and row["state"] in (None, "succeeded")


def _made(tx: Transaction, makings: Sequence[BuildRun], make: Make) -> dict[Wish, BuildMatch]:
    if makings:
        make(tx, makings)
    return {making.wish: BuildMatch(making.run_id, False) for making in makings}


def _identity(row: Row) -> tuple[str, str, str]:
    return row["job"], row["scope"], row["fingerprint"]


def _row(wish: Wish) -> Row:
    return {"job": wish.job, "scope": wish.scope, "fingerprint": wish.fingerprint}
