"""The event buffer: one lock of the database is one event, however many threads of a worker waited for it."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import pytest
from tests.databases import sqlite

from holdfast import Holdfast, StoreBusy
from holdfast.worker.event_buffer import EventBuffer

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def busy(since: float) -> StoreBusy:
    error = StoreBusy("the database is locked")
    error.since = since
    return error


@pytest.mark.contract("P10")
def test_a_thread_that_waited_for_a_recorded_lock_adds_no_second_event() -> None:
    buffer = EventBuffer("a")
    buffer.contended(busy(since=1), at=NOW)
    buffer.contended(busy(since=2), at=NOW)
    batch = buffer.take()
    assert batch[1] is not None
    buffer.written(batch, elapsed=5)
    assert not buffer

    buffer.contended(busy(since=3), at=NOW)
    assert not buffer, "it waited for the lock that is recorded already"
    buffer.contended(busy(since=6), at=NOW)
    assert buffer, "this is another lock"


@pytest.mark.contract("P10")
def test_an_error_about_a_lock_says_when_the_wait_began(sqlite_url: str) -> None:
    with Holdfast(sqlite_url, busy_timeout=0.1) as hf:
        hf.start()
        job = hf.job(name="job")(lambda: None)
        other = sqlite.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
        with contextlib.closing(other):
            other.execute("begin immediate")
            before = hf.clock.elapsed()
            with pytest.raises(StoreBusy) as raised:
                job.submit()
            after = hf.clock.elapsed()
    assert raised.value.since is not None
    assert before <= raised.value.since < after
