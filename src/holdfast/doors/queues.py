"""hf.queues: pause, limit and look at queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import queues
from holdfast.doors.limits import write
from holdfast.queues import UNSET, Limits, Queue, Unset

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
        write(self._hf.store, name, limits)
