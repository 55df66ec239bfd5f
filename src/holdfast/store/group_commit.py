"""Group commit: calls that are made at the same time are done in one commit.

The caller that gets the lock does the work of every caller that waits for it, so a lone caller pays nothing extra and
many callers pay one commit. An error of one item is its own: a batch that fails is halved down to that item.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from holdfast.support.atfork import on_fork
from holdfast.support.errors import StoreUnavailable
from holdfast.support.threads import Threads

A = TypeVar("A")
B = TypeVar("B")


class GroupCommit(Generic[A, B]):
    """Does `work` for the items of many threads, a batch of at most `limit` at a time."""

    def __init__(self, work: Callable[[Sequence[A]], Sequence[B | Exception]], *, limit: int = 1000) -> None:
        self._work, self._limit = work, limit
        self._threads = Threads("holdfast-group-commit", limit=1)
        self._start()
        on_fork(self._start)  # the items of our parent's threads are not ours

    def _start(self) -> None:
        self._waiting: deque[tuple[A, Future[B]]] = deque()
        self._lock = threading.Lock()

    def do(self, item: A) -> B:
        """The answer for this item, or its error."""
        future = self._join(item)
        while not future.done():
            with self._lock:
                if not future.done():
                    self._serve()
        return future.result()

    async def ado(self, item: A) -> B:
        """`do` for async callers: the event loop goes on while a thread of ours commits."""
        import asyncio

        future = self._join(item)
        self._threads.submit(self._serve_with_the_lock)
        return await asyncio.wrap_future(future)

    def _join(self, item: A) -> Future[B]:
        future: Future[B] = Future()
        self._waiting.append((item, future))
        return future

    def _serve_with_the_lock(self) -> None:
        with self._lock:
            self._serve()

    def _serve(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]
        # An async caller that was cancelled before its turn wants nothing any more.
        try:
            if asked := [(item, future) for item, future in batch if future.set_running_or_notify_cancel()]:
                self._answer(asked)
        finally:
            for _, future in batch:  # interrupted on the way: no caller may wait for ever
                if not future.done():
                    future.set_exception(StoreUnavailable("interrupted before it was known whether it was written"))

    def _answer(self, batch: Sequence[tuple[A, Future[B]]]) -> None:
        def work(part: Sequence[tuple[A, Future[B]]]) -> Sequence[B | Exception]:
            return self._work([item for item, _ in part])

        # One item may have caused an error; but where the database is away, no half can succeed.
        for part, answers in in_halves(batch, work, splits=lambda error: not isinstance(error, StoreUnavailable)):
            if isinstance(answers, Exception):
                answers = [answers] * len(part)
            for (_, future), answer in zip(part, answers, strict=True):
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)


def in_halves(
    batch: Sequence[A], write: Callable[[Sequence[A]], B], *, splits: Callable[[Exception], bool]
) -> Iterator[tuple[Sequence[A], B | Exception]]:
    """Write a batch; if an error `splits` it, write its halves, down to the items that can't be written.

    Yields each part, in order, with what `write` returned or raised.
    """
    parts = deque([batch] if batch else [])
    while parts:
        part = parts.popleft()
        written: B | Exception
        try:
            written = write(part)
        except Exception as error:
            if len(part) > 1 and splits(error):
                middle = len(part) // 2
                parts.extendleft((part[middle:], part[:middle]))
                continue
            written = error
        yield part, written
