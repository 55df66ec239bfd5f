"""Deadlines: a worker checks its leases in time to stop before its guardian would kill it."""

from __future__ import annotations

from datetime import timedelta

from holdfast.testing import FakeClock
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.guardian import Guardian
from holdfast.worker.in_flight import InFlight
from holdfast.worker.shared_memory import SharedMemory

LEASE = timedelta(seconds=8)


def test_the_next_check_is_never_after_the_moment_at_which_the_worker_must_stop() -> None:
    clock, hand, ends = FakeClock(), InFlight(), list[float]()
    hand.guardian = Guardian(SharedMemory.create({}))
    watch = Deadlines(hand, clock, lease=LEASE, on_unsafe=lambda why: ends.append(clock.elapsed()))
    hand.guardian.executing(1)
    must_end_at = clock.elapsed() + 0.5
    hand.guardian.safe_until(must_end_at + LEASE.total_seconds() / 20)

    while not ends and clock.elapsed() < must_end_at + 10:
        clock.advance(timedelta(seconds=watch.check()))
    assert must_end_at <= ends[0] < must_end_at + 0.01

    hand.guardian.executing(0)
    watch.check()
    assert len(ends) == 1, "no function executes that could run beside a takeover"
    hand.guardian.close()
