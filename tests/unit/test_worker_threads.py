"""The thread pool of a worker."""

from __future__ import annotations

import threading

import pytest

from holdfast.worker.threads import Threads


def test_a_pool_that_cannot_start_more_threads_continues_with_those_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, done = Threads("test"), threading.Semaphore(0)
    pool.run(lambda: done.release())
    assert done.acquire(timeout=60)
    monkeypatch.setattr(threading.Thread, "start", _no_more_threads)
    for _ in range(5):
        pool.run(lambda: done.release())
    for _ in range(5):
        assert done.acquire(timeout=60)


def _no_more_threads(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
