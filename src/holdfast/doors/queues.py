"""hf.queues: pause, limit and look at queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import operations, queues
from holdfast.doors.limits import write
from holdfast.queues import UNSET, Limits, Queue, Unset
from holdfast.store.transaction import Transaction

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Queues:
    """The queues of one Holdfast: what they have, their pauses and limits."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf

    def list(self) -> list[Queue]:
        """Every queue that has a run or something said about it."""
        return self._hf.read(queues.listed)

    def get(self, name: str) -> Queue:
        """One queue as it stands; one of which there is nothing to say has no run, no pause and no limit."""
        return next((queue for queue in self.list() if queue.name == name), Queue(name=name))

    def pause(self, name: str, *, note: str | None = None, by: str | None = None) -> None:
        """Let nothing of this queue be claimed until `resume`; what runs goes on."""
        Limits().check(name)

        def pause(tx: Transaction) -> None:
            queues.pause(tx, name, note=note)
            operations.record(tx, by, "pause", queue=name, note=note)

        self._hf.do(pause)

    def resume(self, name: str, *, by: str | None = None) -> None:
        """Let a paused queue be claimed again."""

        def resume(tx: Transaction) -> None:
            queues.resume(tx, name)
            operations.record(tx, by, "resume", queue=name)

        self._hf.do(resume)

    def limit(
        self,
        name: str,
        *,
        max_queued: int | Unset | None = UNSET,
        concurrency: int | Unset | None = UNSET,
        by: str | None = None,
    ) -> None:
        """Change limits of a queue (`*` is all of them together), for every process, at once. None lifts one."""
        limits = Limits(max_queued=max_queued, concurrency=concurrency)
        limits.check(name)
        operations.check(by)
        write(self._hf.store, name, limits, by=by)
