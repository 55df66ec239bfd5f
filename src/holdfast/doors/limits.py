"""Limits of queues, on their way into the database: those that the code declares, and those that a hand sets."""

from __future__ import annotations

from functools import partial

from holdfast import operations, queues, seats
from holdfast.queues import Limits
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction


class Declared:
    """The limits that the code sets by `hf.queue(…)`. A process that sets none leaves a queue's row as it is."""

    def __init__(self) -> None:
        self._limits: dict[str, Limits] = {}

    def add(self, name: str, limits: Limits) -> None:
        limits.check(name)
        if limits.says_nothing:
            self._limits.pop(name, None)
        else:
            self._limits[name] = limits

    def apply(self, store: Store) -> None:
        """Write them down, if they are not what the code last said."""
        if not self._limits:
            return
        wanted = dict(self._limits)
        news = store.read(lambda tx: [name for name in sorted(wanted) if queues.is_news(tx, name, wanted[name])])
        for name in news:
            write(store, name, wanted[name], declared=True)


def write(store: Store, name: str, limits: Limits, *, declared: bool = False, by: str | None = None) -> None:
    """Set what of a queue's limits was said, and count what is there."""
    bounds = isinstance(limits.max_queued, int)
    if bounds:
        # Before, in small pieces: what runs must not be held still while all that waits is counted.
        _fill(store, name)

    def limit(tx: Transaction) -> None:
        queues.limit(tx, name, limits, declared=declared)
        operations.record(tx, by, "limit", queue=name, limits=limits.text)

    store.do(limit)
    if bounds:
        # Again, for runs that moved from place to place just then.
        _fill(store, name)


def _fill(store: Store, name: str) -> None:
    after: str | None = ""
    while after is not None:
        after = store.do(partial(seats.fill, queue=name, after=after))
