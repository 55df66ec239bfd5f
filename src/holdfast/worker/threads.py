"""Threads: execute runs in threads that are created on demand and reused.

A thread can't be killed. If its run ends while the function still executes, the thread stays until the function
returns, and another thread takes its place.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from holdfast.support import django_bridge

log = logging.getLogger("holdfast.worker")


class Threads:
    """A pool that has one thread per long task but only a few threads for short tasks.

    Tasks wait in one queue. A thread that takes a task wakes or creates the next thread. Each long task therefore gets
    a thread at once, while short tasks are done by the first few threads before others have started.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._idle = 0
        self._made = 0
        self._waking = False
        self._closed = False

    def run(self, work: Callable[[], None]) -> None:
        """Execute `work` in a thread as soon as possible."""
        self._queue.append(work)
        self._wake_one()

    def close(self) -> None:
        """End idle threads now and busy ones when their work returns."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wake_one(self) -> None:
        if self._waking:  # a thread is starting; it takes a task and wakes the next thread
            return
        with self._changed:
            if self._waking or not self._queue:
                return
            self._waking = True
            if self._idle:
                self._changed.notify()
            else:
                try:
                    threading.Thread(target=self._serve, name=f"{self._name}-{self._made + 1}", daemon=True).start()
                    self._made += 1
                except RuntimeError:
                    self._waking = False  # the system allows no more threads; the existing ones do the work
                    if not self._made:
                        raise

    def _serve(self) -> None:
        self._waking = False
        while True:
            try:
                work = self._queue.popleft()
            except IndexError:
                if not self._wait():
                    django_bridge.close_connections()
                    return
                continue
            if self._queue:
                self._wake_one()
            try:
                work()
            except BaseException:
                log.exception("a worker thread raised an error outside of its run")

    def _wait(self) -> bool:
        """Wait until there is work; False if the pool is closed."""
        with self._changed:
            while not self._queue:
                if self._closed:
                    return False
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
                self._waking = False
        return True
