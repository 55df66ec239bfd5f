"""Hub: one watcher for all streams of a process. It asks the database once for all of them, and only while someone
watches; no one holds a connection while they wait.

    a commit rings ──▶ ┐
    another process's ─▶├──▶ look: what is new of the watched runs, and at all? ──▶ those who watch it are woken
    half a second ────▶ ┘
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from holdfast.store.notifier import Listener
from holdfast.support.errors import HoldfastError
from holdfast.support.threads import Threads

if TYPE_CHECKING:
    from holdfast.app import Holdfast

log = logging.getLogger("holdfast.web")

T = TypeVar("T")

LOOK_EVERY = 0.5  # seconds, where nothing rings
LOOK_AT_MOST = 0.05
THREADS = 4  # and so many connections at most
GENERAL, WORKERS = "runs", "workers"  # what is new at all, and of workers; run ids are longer
LINGER = 10.0  # seconds for which it is ready for the next one after the last has left


@dataclass(eq=False)
class Watch:
    """Someone who waits for news of some runs, or of anything."""

    names: frozenset[str]
    _new: set[str] = field(default_factory=set)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self, name: str) -> None:
        self._new.add(name)
        self._woken.set()

    def take(self) -> set[str]:
        """What there is news of. Taken before one looks, so that what comes meanwhile is not lost."""
        new, self._new = self._new, set()
        self._woken.clear()
        return new

    async def wait(self, seconds: float) -> bool:
        """Wait for news; whether there is any."""
        return await _happens(self._woken, within=seconds)


class Hub:
    def __init__(self, hf: Holdfast) -> None:
        self.loop = asyncio.get_running_loop()
        self.closing = False
        self._hf = hf
        self._threads = Threads("holdfast-streams", limit=THREADS)
        self._watches: dict[str, set[Watch]] = {}
        self._marks: dict[str, str] = {}
        self._rounds: dict[str, int] = {}
        self._round = 0
        self._rung, self._came = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def watch(self, *names: str) -> Iterator[Watch]:
        """Be woken when there is news of these runs; GENERAL is anything at all."""
        watch = Watch(frozenset(names))
        for name in watch.names:
            self._watches.setdefault(name, set()).add(watch)
            if name in self._marks or self.closing:
                watch.wake(name)  # as the first look at what no one watched before does
        self._came.set()
        if self._task is None and not self.closing:
            self._task = self.loop.create_task(self._run())
        try:
            yield watch
        finally:
            for name in watch.names:
                self._watches[name].discard(watch)
                if not self._watches[name]:
                    del self._watches[name]
                    self._marks.pop(name, None)
                    self._rounds.pop(name, None)

    def round(self, name: str) -> int:
        """Another one whenever there may be news: what was read in it is as good as what anyone reads in it."""
        return self._rounds.get(name, 0)

    async def ask(self, question: Callable[[], T]) -> T:
        """Ask the database, on one of a few threads."""
        return await self._threads.run(question)

    def close(self) -> None:
        """Let everyone go. From any thread, or a signal's handler."""
        self.closing = True
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._wake_all)

    async def _run(self) -> None:
        """Look while someone watches."""
        store = await self.ask(lambda: self._hf.store)
        listener = Listener(store, self._hf.notifier, listen=self._hf.settings.listen)
        leave = self._hf.notifier.listen(lambda names, ended: self._ring())
        listener.start()
        try:
            while not self.closing and (self._watches or await _happens(self._came, within=LINGER)):
                self._rung.clear()
                self._came.clear()
                await self._look()
                await asyncio.sleep(LOOK_AT_MOST)
                await _happens(self._rung, within=LOOK_EVERY)
                self.closing = self.closing or _told_to_stop()
        finally:
            self._task = None
            leave()
            self._wake_all()
            listener.request_stop()

    async def _look(self) -> None:
        names = list(self._watches)
        try:
            marks = await self.ask(lambda: self._ask(names))
        except HoldfastError as error:
            log.info("streams wait: %s", error)  # whoever asks for something is told; these go on when it is back
            return
        except Exception:
            log.exception("streams could not look for news; they look again")
            return
        for name, mark in marks.items():
            if name in self._watches and self._marks.get(name) != mark:
                self._marks[name] = mark
                self._wake(name)

    def _ask(self, names: list[str]) -> Mapping[str, str]:
        runs = [name for name in names if name not in (GENERAL, WORKERS)]
        marks = dict(self._hf.marks(runs)) if runs else {}
        if len(runs) < len(names):
            signs = self._hf.signs()
            marks |= {GENERAL: signs.runs, WORKERS: signs.workers}
        return marks

    def _wake(self, name: str) -> None:
        self._round += 1
        self._rounds[name] = self._round
        for watch in self._watches.get(name, ()):
            watch.wake(name)

    def _wake_all(self) -> None:
        for name in self._watches:
            self._wake(name)

    def _ring(self) -> None:
        if not self._rung.is_set() and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._rung.set)


async def _happens(event: asyncio.Event, *, within: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()


def _told_to_stop() -> bool:
    """Whether the server around us has been told to stop: uvicorn waits for open answers and tells no one."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return bool(getattr(server, "should_exit", False))
