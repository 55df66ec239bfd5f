"""Pool: the idle connections of a store, and a limit on the threads that use connections at once.

A thread that uses a connection never waits for a second one; otherwise threads that each hold one could deadlock.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from holdfast.support.errors import StoreBusy

IDLE_FOR = 30.0  # seconds after which an idle connection is closed
WARM = 1  # idle connections that stay open


class Pool:
    """Keeps idle connections. The one used last is used next, and those that stay unused are closed after a while."""

    def __init__(
        self, close: Callable[[Any], None], elapsed: Callable[[], float], *, limit: int, wait: timedelta
    ) -> None:
        self._close, self._elapsed, self._limit, self._wait = close, elapsed, limit, wait
        self._turns, self._mine = Turns(limit), threading.local()
        self._idle: deque[tuple[Any, float]] = deque()
        self._lock = threading.Lock()
        self._closes = False

    @contextlib.contextmanager
    def turn(self, *, waits: bool = True) -> Iterator[None]:
        """Wait until this thread may use connections; raise StoreBusy if that takes too long.

        `waits=False` is for the engine's own few threads, which must never wait for others.
        """
        if getattr(self._mine, "has_turn", False):
            yield
            return
        if waits and not self._turns.take(self._wait.total_seconds()):
            raise StoreBusy(
                f"no database connection became free within {self._wait.total_seconds():g} s: all {self._limit} of "
                "max_connections are in use; nothing was written"
            )
        self._mine.has_turn = True
        try:
            yield
        finally:
            self._mine.has_turn = False
            if waits:
                self._turns.give()

    def take(self) -> Any:
        """Take the idle connection that was used last; None if there is none."""
        try:
            return self._idle.pop()[0]
        except IndexError:
            return None

    def keep(self, connection: Any) -> None:
        """Keep a connection for later use."""
        self._idle.append((connection, self._elapsed()))
        if len(self._idle) > WARM:
            with self._lock:
                if not self._closes:
                    self._closes = True
                    threading.Thread(target=self._close_old, name="holdfast-pool", daemon=True).start()

    def close_idle(self) -> None:
        while (connection := self.take()) is not None:
            self._close(connection)

    @property
    def idle(self) -> list[Any]:
        return [connection for connection, _ in self._idle]

    def before_fork(self) -> None:
        """Wait until no connection is being closed, so that a child inherits no half-closed connection."""
        self._held_for_fork = self._lock.acquire(timeout=1.0)

    def after_fork_in_parent(self) -> None:
        if self._held_for_fork:
            self._lock.release()

    def _close_old(self) -> None:
        """Close connections that have been idle for too long, until only WARM of them are left."""
        pause = threading.Event()
        while True:
            with self._lock:
                wait = self._close_oldest()
                if wait is None:
                    self._closes = False
                    return
            pause.wait(wait)

    def _close_oldest(self) -> float | None:
        """Close the oldest idle connection if it is due. Return how long to wait for the next one, or None to stop."""
        if len(self._idle) <= WARM:
            return None
        with contextlib.suppress(IndexError):  # other threads may take connections meanwhile
            left = self._idle[0][1] + IDLE_FOR - self._elapsed()
            if left > 0:
                return left
            self._close(self._idle.popleft()[0])
        return 0.0


class Turns:
    """A semaphore that serves waiting threads in the order in which they asked."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._lock = threading.Lock()
        self._line: deque[threading.Event] = deque()

    def take(self, wait: float) -> bool:
        """Wait for a turn; return False if none becomes free in time."""
        with self._lock:
            if self._free:
                self._free -= 1
                return True
            given = threading.Event()
            self._line.append(given)
        if given.wait(wait):
            return True
        with self._lock:
            if given.is_set():  # the turn was given just after the wait
                return True
            self._line.remove(given)
            return False

    def give(self) -> None:
        with self._lock:
            if self._line:
                self._line.popleft().set()
            else:
                self._free += 1
