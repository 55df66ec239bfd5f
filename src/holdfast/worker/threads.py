"""Threads: the runs of a worker in threads that are made when needed and used again.

A thread whose run was ended over its head can't be killed; it lingers until its function returns, and another thread
takes its place.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from holdfast.support import django_bridge

log = logging.getLogger("holdfast.worker")


class Threads:
    """As many threads as there is work that takes time, and few where it takes none.

    Work lies in one line. A thread that takes a piece wakes (or makes) the next thread, which takes the next piece when
    the first one waits for something, or finds nothing left. So long work has a thread each within moments, and short
    work is done by the first few before the others are up.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._line: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._idle = 0
        self._made = 0
        self._waking = False
        self._closed = False

    def run(self, work: Callable[[], None]) -> None:
        """Do `work` in a thread, now."""
        self._line.append(work)
        self._wake_one()

    def close(self) -> None:
        """Let idle threads go; busy ones follow when their work returns."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _wake_one(self) -> None:
        if self._waking:  # whoever is on its way takes a piece and wakes the next
            return
        with self._changed:
            if self._waking or not self._line:
                return
            self._waking = True
            if self._idle:
                self._changed.notify()
            else:
                try:
                    threading.Thread(target=self._serve, name=f"{self._name}-{self._made + 1}", daemon=True).start()
                    self._made += 1
                except RuntimeError:
                    self._waking = False  # no more threads to be had: those there are take the work in turn
                    if not self._made:
                        raise

    def _serve(self) -> None:
        self._waking = False
        while True:
            try:
                work = self._line.popleft()
            except IndexError:
                if not self._wait():
                    django_bridge.close_connections()
                    return
                continue
            if self._line:
                self._wake_one()
            try:
                work()
            except BaseException:
                log.exception("what runs in a thread of the pool failed outside of its run")

    def _wait(self) -> bool:
        """Sleep until there is work; False when there will be none."""
        with self._changed:
            while not self._line:
                if self._closed:
                    return False
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
                self._waking = False
        return True
