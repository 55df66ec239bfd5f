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
    clock, in_flight, unsafe_at = FakeClock(), InFlight(), list[float]()
    in_flight.guardian = Guardian(SharedMemory.create({}))
    deadlines = Deadlines(in_flight, clock, lease=LEASE, on_unsafe=lambda why: unsafe_at.append(clock.elapsed()))
    in_flight.guardian.executing(1)
    must_end_at = clock.elapsed() + 0.5
    in_flight.guardian.safe_until(must_end_at + LEASE.total_seconds() / 20)

    while not unsafe_at and clock.elapsed() < must_end_at + 10:
        clock.advance(timedelta(seconds=deadlines.check()))
    assert must_end_at <= unsafe_at[0] < must_end_at + 0.01

    in_flight.guardian.executing(0)
    deadlines.check()
    assert len(unsafe_at) == 1, "without a running function there is nothing to stop"
    in_flight.guardian.close()
