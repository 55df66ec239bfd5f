"""Pool: where work happens. Threads that are made when needed and used again, and one event loop.

A thread whose run was ended over its head can't be killed; it lingers until its function returns, and another thread
takes its place.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any


class Threads:
    """As many threads as there is work that takes time, and few where it takes none.

    Each thread that takes a piece wakes (or makes) the next one if more is waiting. Long work so has a thread each
    within moments; short work is done by the first ones before the others are up, and no one is woken for nothing.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._work: deque[Callable[[], None]] = deque()
        self._idle = 0
        self._made = 0
        self._waking = False
        self._closed = False

    def run(self, work: Callable[[], None]) -> None:
        """Do `work` in a thread, now."""
        with self._changed:
            self._work.append(work)
            self._wake_one()

    def close(self) -> None:
        """Let idle threads go; busy ones follow when their work returns."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wake_one(self) -> None:
        if self._waking or not self._work:
            return
        self._waking = True
        if self._idle:
            self._changed.notify()
        else:
            self._made += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._made}", daemon=True).start()

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            work()

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._work:
                if self._closed:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
                self._waking = False
            self._waking = False
            work = self._work.popleft()
            self._wake_one()
            return work


class Loop:
    """One event loop in a thread of its own, started when the first async job comes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._started())

    def call(self, fn: Callable[[], object]) -> None:
        """Do `fn` on the loop, soon; nothing if there is no loop any more."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(fn)

    def close(self, *, wait: float) -> None:
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(wait)

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()
