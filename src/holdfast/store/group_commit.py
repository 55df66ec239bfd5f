"""Group commit: writes the items of concurrent callers in one commit.

The caller that gets the lock does the work of all waiting callers. So a single caller pays nothing extra, and many
callers share one commit. An error affects only its item: a batch that fails is halved until the item is found.
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
    """Calls `work` with the items of many threads, in batches of at most `limit`."""

    def __init__(self, work: Callable[[Sequence[A]], Sequence[B | Exception]], *, limit: int = 1000) -> None:
        self._work, self._limit = work, limit
        self._threads = Threads("holdfast-group-commit", limit=1)
        self._start()
        on_fork(self._start)  # a child must not write the items of its parent's threads

    def _start(self) -> None:
        self._waiting: deque[tuple[A, Future[B]]] = deque()
        self._lock = threading.Lock()

    def do(self, item: A) -> B:
        """Return the result for this item, or raise its error."""
        future = self._enqueue(item)
        while not future.done():
            with self._lock:
                if not future.done():
                    self._serve()
        return future.result()

    async def ado(self, item: A) -> B:
        """Do the same for async callers, without blocking the event loop during the commit."""
        import asyncio

        future = self._enqueue(item)
        self._threads.submit(self._serve_with_the_lock)
        return await asyncio.wrap_future(future)

    def _enqueue(self, item: A) -> Future[B]:
        future: Future[B] = Future()
        self._waiting.append((item, future))
        return future

    def _serve_with_the_lock(self) -> None:
        with self._lock:
            self._serve()

    def _serve(self) -> None:
        batch = [self._waiting.popleft() for _ in range(min(self._limit, len(self._waiting)))]
        # Leave out the items of async callers that were cancelled in the meantime.
        try:
            if active := [(item, future) for item, future in batch if future.set_running_or_notify_cancel()]:
                self._write(active)
        finally:
            for _, future in batch:  # after an interruption no caller may wait for ever
                if not future.done():
                    future.set_exception(StoreUnavailable("interrupted; it is not known whether the commit succeeded"))

    def _write(self, batch: Sequence[tuple[A, Future[B]]]) -> None:
        def work(part: Sequence[tuple[A, Future[B]]]) -> Sequence[B | Exception]:
            return self._work([item for item, _ in part])

        # Split a failed batch to find the bad item; but if the database is unavailable, no half can succeed.
        for part, results in in_halves(batch, work, splits=lambda error: not isinstance(error, StoreUnavailable)):
            if isinstance(results, Exception):
                results = [results] * len(part)
            for (_, future), result in zip(part, results, strict=True):
                if isinstance(result, Exception):
                    future.set_exception(result)
                else:
                    future.set_result(result)


def in_halves(
    batch: Sequence[A], write: Callable[[Sequence[A]], B], *, splits: Callable[[Exception], bool]
) -> Iterator[tuple[Sequence[A], B | Exception]]:
    """Write a batch. After an error for which `splits` is true, write its halves, down to single items.

    Yields each part, in order, with the result of `write` or its error.
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
