"""The system clock, clock jumps, and the fake clock for tests."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.support.clock import JUMP, SystemClock
from holdfast.testing import FakeClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class SteppedClock(SystemClock):
    """A system clock whose elapsed seconds are set by the test."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        super().__init__()

    def elapsed(self) -> float:
        return self.seconds

    def wall(self) -> datetime:
        return NOW


def test_now_is_the_time_of_the_host_until_a_database_has_answered() -> None:
    clock = SteppedClock()
    assert clock.now() == NOW
    clock.follow(NOW + timedelta(hours=3), asked=999.9, answered=1000.1)
    assert clock.now() == NOW + timedelta(hours=3)
    clock.seconds += 60
    assert clock.now() == NOW + timedelta(hours=3, minutes=1)


def test_small_differences_are_corrected_and_a_jump_is_noticed() -> None:
    clock = SteppedClock()
    clock.follow(NOW, asked=1000, answered=1000)
    clock.seconds += 100
    assert clock.settled_for() >= timedelta(seconds=100)
    clock.follow(NOW + timedelta(seconds=100.01), asked=1099.9, answered=1100.1)
    assert clock.now() == NOW + timedelta(seconds=100), "differences within the measurement error are ignored"
    clock.follow(NOW + timedelta(seconds=100.5), asked=1100, answered=1100)
    assert clock.settled_for() >= timedelta(seconds=100), "half a second is drift, not a jump"
    assert clock.now() == NOW + timedelta(seconds=100.5)
    clock.follow(NOW + timedelta(seconds=100.5) + 2 * JUMP, asked=1100, answered=1100)
    assert clock.settled_for() == timedelta(0)
    clock.seconds += 5
    assert clock.settled_for() == timedelta(seconds=5)


@pytest.mark.contract("L7")
def test_the_real_clock_includes_the_time_of_a_suspended_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    suspended = {time.CLOCK_BOOTTIME: 0.0}
    real = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda which: real(which) + suspended.get(which, 0.0))
    clock = SystemClock()
    clock.follow(NOW, asked=clock.elapsed(), answered=clock.elapsed())
    before = clock.elapsed()
    suspended[time.CLOCK_BOOTTIME] = 3600.0
    assert clock.elapsed() - before >= 3600
    assert clock.now() >= NOW + timedelta(hours=1)


def test_the_real_clock_never_goes_back() -> None:
    clock = SystemClock()
    readings = [clock.elapsed() for _ in range(100)]
    assert readings == sorted(readings)
    assert clock.wall().tzinfo is UTC
    assert clock.now().tzinfo is UTC


def test_a_fake_clock_moves_only_when_advanced() -> None:
    clock = FakeClock()
    assert clock.now() == clock.now() == clock.wall()
    clock.follow(NOW + timedelta(days=9), asked=0, answered=0)
    start, elapsed = clock.now(), clock.elapsed()
    clock.advance(5)
    assert (clock.now() - start, clock.elapsed() - elapsed) == (timedelta(seconds=5), 5)
    clock.jump(timedelta(hours=-1))
    assert clock.elapsed() - elapsed == 5, "a jump does not change the elapsed time"
    assert clock.settled_for() == timedelta(0)
