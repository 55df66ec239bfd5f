"""Gather: what many callers ask at once is done in one commit.

Whoever gets the floor does the work of everyone who is waiting for it, so a lone caller pays nothing extra and a
crowd pays one commit. An error of one member is its own: a batch that fails is halved down to the culprit.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from holdfast.support.errors import StoreUnavailable
from holdfast.support.threads import Threads

A = TypeVar("A")
B = TypeVar("B")


class GroupCommit(Generic[A, B]):
    def __init__(self, work: Callable[[Sequence[A]], Sequence[B | Exception]], *, limit: int = 1000) -> None:
        self._work, self._limit = work, limit
        self._threads = Threads("holdfast-gather", limit=1)
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._waiting: deque[tuple[A, Future[B]]] = deque()
        self._floor = threading.Lock()

    def do(self, item: A) -> B:
        """The answer for this item, or its error."""
        future = self._join(item)
        while not future.done():
            with self._floor:
                if not future.done():
                    self._serve()
        return future.result()

    async def ado(self, item: A) -> B:
        """`do` for async callers: the event loop goes on while a thread of ours commits."""
        future = self._join(item)
        self._threads.submit(self._serve_with_the_floor)
        return await asyncio.wrap_future(future)

    def _join(self, item: A) -> Future[B]:
        if self._pid != os.getpid():
            self._start()  # after a fork: what our parent's threads were about is not ours
        future: Future[B] = Future()
        self._waiting.append((item, future))
        return future

    def _serve_with_the_floor(self) -> None:
        with self._floor:
            self._serve()

    def _serve(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]
        # Who gave up before its turn (a cancelled async caller) has asked for nothing.
        try:
            if asked := [(item, future) for item, future in batch if future.set_running_or_notify_cancel()]:
                self._answer(asked)
        finally:
            for _, future in batch:  # interrupted on the way: no one may wait for ever
                if not future.done():
                    future.set_exception(StoreUnavailable("interrupted before it was known whether it was written"))

    def _answer(self, batch: list[tuple[A, Future[B]]]) -> None:
        try:
            answers = self._work([item for item, _ in batch])
        except Exception as error:
            if len(batch) == 1 or isinstance(error, StoreUnavailable):
                for _, future in batch:
                    future.set_exception(error)
                return
            middle = len(batch) // 2
            self._answer(batch[:middle])
            self._answer(batch[middle:])
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)
