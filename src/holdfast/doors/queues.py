"""hf.queues: pause, limit and look at queues."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast import queues, seats
from holdfast.queues import UNSET, Limits, Queue, Unset
from holdfast.store.store import Store

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Queues:
    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf
        self._declared: dict[str, Limits] = {}

    def list(self) -> list[Queue]:
        """Every queue that has a run or something said about it."""
        return self._hf.read(queues.listed)

    def get(self, name: str) -> Queue:
        """One queue as it stands; one of which there is nothing to say has no run, no pause and no limit."""
        return next((queue for queue in self.list() if queue.name == name), Queue(name=name))

    def pause(self, name: str, *, note: str | None = None) -> None:
        """Let nothing of this queue be claimed until `resume`; what runs goes on."""
        Limits().check(name)
        self._hf.do(lambda tx: queues.pause(tx, name, note=note))

    def resume(self, name: str) -> None:
        """Let a paused queue be claimed again."""
        self._hf.do(lambda tx: queues.resume(tx, name))

    def limit(
        self, name: str, *, max_queued: int | Unset | None = UNSET, concurrency: int | Unset | None = UNSET
    ) -> None:
        """Change limits of a queue (`*` is all of them together), for every process, at once. None lifts one."""
        limits = Limits(max_queued=max_queued, concurrency=concurrency)
        limits.check(name)
        self._set(self._hf.store, name, limits)

    def declare(self, name: str, limits: Limits) -> None:
        """Limits that the code sets: written when the engine starts, if they are not what the code last said."""
        limits.check(name)
        self._declared[name] = limits
        if self._hf.started:
            self.apply(self._hf.store)

    def apply(self, store: Store) -> None:
        """Write the limits that the code sets, if they are news."""
        if not self._declared:
            return
        wanted = dict(self._declared)
        news = store.read(lambda tx: [name for name in sorted(wanted) if queues.is_news(tx, name, wanted[name])])
        for name in news:
            self._set(store, name, wanted[name], declared=True)

    def _set(self, store: Store, name: str, limits: Limits, *, declared: bool = False) -> None:
        bounds = isinstance(limits.max_queued, int)
        if bounds:
            # Before, in small pieces: what runs must not be held still while all that waits is counted.
            self._fill(store, name)
        store.do(lambda tx: queues.limit(tx, name, limits, declared=declared))
        if bounds:
            # Again, for runs that moved from place to place just then.
            self._fill(store, name)

    def _fill(self, store: Store, name: str) -> None:
        after: str | None = ""
        while after is not None:
            after = store.do(partial(seats.fill, queue=name, after=after))
