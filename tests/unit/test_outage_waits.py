"""Waiting for the database during an outage: for which errors, for how long, and how often it is logged."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from holdfast import InvalidSetting, StoreBusy, StoreRefused, StoreUnavailable
from holdfast.store import outages
from holdfast.testing import FakeClock


class Database:
    """Fails until `until` seconds have passed; each attempt takes one second."""

    def __init__(self, error: Exception, *, until: float) -> None:
        self.clock, self.error, self.until = FakeClock(), error, until
        self.began = self.clock.elapsed()

    def __call__(self) -> None:
        self.clock.advance(1)
        if self.clock.elapsed() - self.began < self.until:
            raise self.error


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "FIRST", 0.0)


@pytest.mark.parametrize("error", [StoreUnavailable("connection refused"), StoreBusy("locked")])
def test_a_wait_is_logged_once_and_then_rarely(caplog: pytest.LogCaptureFixture, error: Exception) -> None:
    database = Database(error, until=40)
    assert outages.outlast(database, wait=timedelta(seconds=60), clock=database.clock)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        f"waiting for the database, up to 59 s more: {error}",
        f"waiting for the database, up to 44 s more: {error}",
        f"waiting for the database, up to 29 s more: {error}",
        "the database answered after 40 s",
    ]


@pytest.mark.parametrize("wait", [0, 5])
def test_the_last_error_is_raised_at_the_end_of_the_wait(caplog: pytest.LogCaptureFixture, wait: int) -> None:
    database = Database(StoreUnavailable("connection refused"), until=100)
    with pytest.raises(StoreUnavailable, match="connection refused"):
        outages.outlast(database, wait=timedelta(seconds=wait), clock=database.clock)
    assert database.clock.elapsed() - database.began == max(wait, 1)
    assert len(caplog.records) == (1 if wait else 0)


@pytest.mark.parametrize("error", [StoreRefused("wrong password"), InvalidSetting("url"), ValueError("a bug")])
def test_permanent_errors_are_raised_at_once(caplog: pytest.LogCaptureFixture, error: Exception) -> None:
    database = Database(error, until=100)
    with pytest.raises(type(error)):
        outages.outlast(database, wait=timedelta(seconds=60), clock=database.clock)
    assert database.clock.elapsed() - database.began == 1
    assert not caplog.records


def test_nothing_is_logged_if_the_database_answers(caplog: pytest.LogCaptureFixture) -> None:
    database = Database(StoreUnavailable("connection refused"), until=0)
    assert outages.outlast(database, wait=None, clock=database.clock)
    assert not caplog.records


def test_a_stop_ends_the_wait() -> None:
    stopping = threading.Event()

    def attempt() -> None:
        stopping.set()
        raise StoreUnavailable("connection refused")

    assert not outages.outlast(attempt, wait=timedelta(seconds=60), clock=FakeClock(), stopping=stopping)
