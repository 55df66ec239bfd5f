"""Hub: watches for changes on behalf of all streams of a process.

It reads the database once for all of them, and only while there are streams. A waiting stream holds no connection.

    a commit here ────────────▶┐
    a commit elsewhere ───────▶├──▶ check: which watched runs have changed? ──▶ wake their streams
    half a second has passed ─▶┘
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from holdfast.operate.changes import change_markers, run_markers
from holdfast.store.notifier import Listener
from holdfast.support.errors import HoldfastError
from holdfast.support.threads import Threads

if TYPE_CHECKING:
    from holdfast.app import Holdfast

log = logging.getLogger("holdfast.web")

T = TypeVar("T")

CHECK_EVERY = 0.5  # seconds, if no notification arrives
CHECK_AT_MOST = 0.05  # seconds between two checks
THREADS = 4  # each uses at most one connection
GENERAL, WORKERS = "runs", "workers"  # topics for any change and for workers; run ids are longer, so they never clash
LINGER = 10.0  # seconds that the hub keeps running after the last stream has closed


@dataclass(eq=False)
class Watch:
    """A stream that waits for changes of some runs, or of any run."""

    names: frozenset[str]
    _new: set[str] = field(default_factory=set)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self, name: str) -> None:
        self._new.add(name)
        self._woken.set()

    def take(self) -> set[str]:
        """Return what has changed, and clear it. Call this before reading, so that no later change is lost."""
        new, self._new = self._new, set()
        self._woken.clear()
        return new

    async def wait(self, seconds: float) -> bool:
        """Wait for a change; return whether there was one."""
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
        self._notified, self._watched = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def watch(self, *names: str) -> Iterator[Watch]:
        """Yield a Watch that wakes when one of these runs changes; GENERAL stands for any change."""
        watch = Watch(frozenset(names))
        for name in watch.names:
            self._watches.setdefault(name, set()).add(watch)
            if name in self._marks or self.closing:
                watch.wake(name)  # otherwise the first check of the name wakes it
        self._watched.set()
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
        """Return a number that changes with every change; data read in the same round can be shared."""
        return self._rounds.get(name, 0)

    async def ask(self, question: Callable[[], T]) -> T:
        """Run a database read on one of a few threads."""
        return await self._threads.run(question)

    def close(self) -> None:
        """End all streams. Safe to call from any thread or signal handler."""
        self.closing = True
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._wake_all)

    async def _run(self) -> None:
        """Check for changes while there are streams."""
        store = await self.ask(lambda: self._hf.store)
        listener = Listener(store, self._hf.notifier, listen=self._hf.settings.listen)
        leave = self._hf.notifier.listen(lambda names, ended: self._notify())
        listener.start()
        try:
            while not self.closing and (self._watches or await _happens(self._watched, within=LINGER)):
                self._notified.clear()
                self._watched.clear()
                await self._check()
                await asyncio.sleep(CHECK_AT_MOST)
                await _happens(self._notified, within=CHECK_EVERY)
                self.closing = self.closing or _server_is_stopping()
        finally:
            self._task = None
            leave()
            self._wake_all()
            listener.request_stop()

    async def _check(self) -> None:
        names = list(self._watches)
        try:
            marks = await self.ask(lambda: self._read_markers(names))
        except HoldfastError as error:
            log.info("event streams are waiting for the database: %s", error)
            return
        except Exception:
            log.exception("event streams could not check for changes; trying again")
            return
        for name, mark in marks.items():
            if name in self._watches and self._marks.get(name) != mark:
                self._marks[name] = mark
                self._wake(name)

    def _read_markers(self, names: list[str]) -> Mapping[str, str]:
        runs = [name for name in names if name not in (GENERAL, WORKERS)]
        marks = dict(self._hf.read(lambda tx: run_markers(tx, runs))) if runs else {}
        if len(runs) < len(names):
            changes = self._hf.read(change_markers)
            marks |= {GENERAL: changes.runs, WORKERS: changes.workers}
        return marks

    def _wake(self, name: str) -> None:
        self._round += 1
        self._rounds[name] = self._round
        for watch in self._watches.get(name, ()):
            watch.wake(name)

    def _wake_all(self) -> None:
        for name in self._watches:
            self._wake(name)

    def _notify(self) -> None:
        if not self._notified.is_set() and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._notified.set)


async def _happens(event: asyncio.Event, *, within: float) -> bool:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await event.wait()
    return event.is_set()


def _server_is_stopping() -> bool:
    """Return whether uvicorn is stopping. It waits for open responses, but it does not tell them to end."""
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return bool(getattr(server, "should_exit", False))
