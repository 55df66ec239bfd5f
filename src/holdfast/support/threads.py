"""Threads: a bounded pool of threads for blocking calls, such as those that async code makes.

asyncio's default executor belongs to the application, and blocking calls there would delay the application's own.
Its threads also keep the process alive until they return; the threads of this pool are daemons.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

from holdfast.support.atfork import on_fork

P = ParamSpec("P")
T = TypeVar("T")

LINGER = 5.0  # seconds after which an idle thread ends


class Threads:
    """Runs calls in at most `limit` threads. A call that is cancelled before it starts is never made."""

    def __init__(self, name: str, *, limit: int) -> None:
        self._name, self._limit = name, limit
        self._reset()
        on_fork(self._reset)

    def _reset(self) -> None:
        self._line: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changed = threading.Condition()
        self._alive = self._idle = 0

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `fn` in one of the threads and await its result."""
        import asyncio

        return await asyncio.wrap_future(self.submit(fn, *args, **kwargs))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `fn` in one of the threads, with the caller's context variables."""
        future: Future[T] = Future()
        call = partial(contextvars.copy_context().run, partial(fn, *args, **kwargs))
        with self._changed:
            self._line.append((future, call))
            if len(self._line) > self._idle and self._alive < self._limit:
                self._start()
            self._changed.notify()
        return future

    def _start(self) -> None:
        try:
            threading.Thread(target=self._serve, name=self._name, daemon=True).start()
            self._alive += 1
        except RuntimeError:  # the system has no more threads: the existing ones make the calls in turn
            if not self._alive:
                self._line.pop()
                raise

    def _serve(self) -> None:
        while (taken := self._next()) is not None:
            future, call = taken
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:
                    future.set_exception(error)
            del taken, future, call  # so that an idle thread keeps no result in memory

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        with self._changed:
            while not self._line:
                self._idle += 1
                woken = self._changed.wait(LINGER)
                self._idle -= 1
                if not woken and not self._line:
                    self._alive -= 1
                    return None
            return self._line.popleft()


calls = Threads("holdfast-calls", limit=32)
"""For the blocking calls of async jobs: steps, inputs, artifacts."""
