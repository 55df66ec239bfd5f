"""Break the rules for outcomes, takeover and clock jumps one by one; the simulation must find the violation.

Each test replaces one function or one statement. A few tests check that the unbroken rule holds.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

from tests.mutants.statements import broken
from tests.simulation.broken_rules import FEATURES, Patch, found
from tests.simulation.world import BLOCKED, CHURNING, QUIET, Odds

from holdfast import Holdfast
from holdfast.orchestrator import build_requests, cancel_children, fan_out, promote, recover
from holdfast.orchestrator.loop import Orchestrator
from holdfast.runs import finish
from holdfast.runs.lease import Lease, lease_marks
from holdfast.runs.limits import rates
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support.ids import Ids
from holdfast.support.settings import Settings
from holdfast.testing import FakeClock, Manual
from holdfast.values.policies import Policy
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.in_flight import InFlight, RunInFlight

# Outcomes


def test_the_oracle_finds_a_stage_promoted_before_its_segments_exist(
    monkeypatch: Patch,
) -> None:
    def is_free(row: dict[str, Any]) -> bool:
        return bool(row["missing"] == 0 and row["due_at"] is None)

    monkeypatch.setattr(promote, "_is_free", is_free)
    assert found(FEATURES) is not None


def test_the_oracle_finds_a_stage_that_is_never_split_into_segments(monkeypatch: Patch) -> None:
    monkeypatch.setattr(fan_out, "stages", lambda tx, *, limit: 0)
    assert "never end" in (found(FEATURES) or "")


def test_the_oracle_finds_a_build_request_that_is_never_resolved(monkeypatch: Patch) -> None:
    monkeypatch.setattr(build_requests, "resolve", lambda tx, *, limit: 0)
    assert "never end" in (found(FEATURES, first=14) or "")


def test_the_oracle_finds_children_of_a_failed_run_that_are_not_cancelled(monkeypatch: Patch) -> None:
    monkeypatch.setattr(cancel_children, "children", lambda tx, *, limit: 0)
    assert "pending action of an orchestrator" in (found(FEATURES, first=3) or "")


def test_the_oracle_finds_a_rate_that_claims_ignore(monkeypatch: Patch) -> None:
    monkeypatch.setattr(rates, "decide", lambda tx, runs: rates.RateDecision())
    assert "but the rate is" in (found(FEATURES) or "")


def test_the_oracle_finds_a_crash_that_erases_an_accepted_cancel(monkeypatch: Patch) -> None:
    decide = recover.decide

    def forgetful(tx: Transaction, lease: Lease, policy: Policy, **given: Any) -> Any:
        return decide(tx, replace(lease, cancel_requested_at=None), policy, **given)

    monkeypatch.setattr(recover, "decide", forgetful)
    assert "cancelled" in (found(Odds(features=0, crash=0.01), first=39) or "")


def test_the_oracle_finds_a_retry_that_erases_an_accepted_cancel(monkeypatch: Patch) -> None:
    monkeypatch.setattr(finish, "_unless_cancelled", lambda lease, outcome: outcome)
    assert "cancelled" in (found(Odds(features=0, clients=3), first=18) or "")


def test_the_oracle_finds_an_outage_that_is_mistaken_for_a_timeout(monkeypatch: Patch) -> None:
    """Broken: the time at which the expired lease is noticed decides, not the time at which the lease expired."""

    def noticed(tx: Transaction, lease: Lease, **_: Any) -> bool:
        return lease.deadline_at is not None and lease.deadline_at <= tx.now

    monkeypatch.setattr(recover, "_timed_out", noticed)
    problem = found(replace(QUIET, crash=0.02, workers=2)) or ""
    assert "before the deadline" in problem or "used up an attempt" in problem


# Takeover


def test_the_oracle_finds_a_lease_removed_as_soon_as_it_is_seen_expired(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Settings, "proof_for", timedelta(seconds=6))
    monkeypatch.setattr(Settings, "takeover_wait", timedelta(0))
    assert "lease was removed" in (found(BLOCKED) or "")


def test_the_oracle_finds_a_renewal_that_does_not_clear_the_expired_mark() -> None:
    kept = broken("sqlite", "renew_leases", "expired_seen_at = null", "expired_seen_at = expired_seen_at")
    assert "lease was removed" in (found(replace(QUIET, block_one=0.04), replaced=kept, first=7) or "")


def test_the_oracle_finds_orchestrators_that_need_a_minimum_age_for_takeover(
    monkeypatch: Patch,
) -> None:
    may_take_over, created_at = Orchestrator._may_take_over, WeakKeyDictionary[Orchestrator, float]()

    def old_enough(self: Orchestrator) -> bool:
        age = self._clock.elapsed() - created_at.setdefault(self, self._clock.elapsed())
        return age >= self._settings.lease.total_seconds() and may_take_over(self)

    monkeypatch.setattr(Orchestrator, "_may_take_over", old_enough)
    assert "lease is not removed" in (found(CHURNING) or "")


def test_the_oracle_finds_a_worker_that_takes_a_locked_database_for_a_lost_lease(
    monkeypatch: Patch,
) -> None:
    monkeypatch.setattr(Heartbeat, "confirm_leases", lambda self: None)
    assert "its worker is alive" in (found(BLOCKED, first=8) or "")


def test_the_oracle_finds_a_worker_that_ignores_the_expired_mark(
    monkeypatch: Patch,
) -> None:
    marks = lease_marks
    monkeypatch.setattr("holdfast.worker.heartbeat.lease_marks", lambda tx, holder: dict.fromkeys(marks(tx, holder)))
    alone = replace(QUIET, block_one=0.01)
    assert found(alone, first=8) is not None


def test_a_worker_stops_its_runs_in_time_if_it_is_the_only_one_that_cannot_write() -> None:
    assert found(replace(QUIET, block_one=0.01), seeds=5) is None


# Clocks


def test_the_oracle_finds_a_takeover_right_after_a_clock_jump(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Orchestrator, "_may_take_over", lambda self: True)
    assert found(Odds(features=0, clock_step=0.02), first=7) is not None


def test_the_oracle_finds_an_orchestrator_that_does_not_notice_clock_jumps(
    monkeypatch: Patch,
) -> None:
    """Broken: the orchestrator does not compare its clock with the database's clock before it removes leases."""
    monkeypatch.setattr(Store, "follow_clock", lambda self: None)
    assert found(Odds(features=0, clock_step=0.02), first=6) is not None


def test_the_oracle_finds_a_run_that_starts_after_the_lease_of_its_claim_has_expired(monkeypatch: Patch) -> None:
    too_late = Deadlines.too_late
    monkeypatch.setattr(
        Deadlines, "too_late", lambda self, running: running in self._in_flight.all() and too_late(self, running)
    )
    stalling = Odds(features=0, stall=0.2, crash=0, pause=0, clock_step=0, shutdown=0, operations=12, chaos_for=90)
    assert found(replace(stalling, workers=4, concurrency=2), first=40) is not None


def lease_time_after_a_jump(url: str) -> timedelta:
    """The remaining time of a lease that was renewed after the clock jumped past the run's deadline."""
    clock = FakeClock()
    with Holdfast(url, clock=clock, ids=Ids(seed=1)) as hf:
        job = hf.job(name="free", timeout=60)(lambda: None)
        run = job.submit()
        [claim] = Manual(hf).worker("a").claim()
        now = clock.elapsed()
        in_flight = InFlight()
        in_flight.take(RunInFlight(claimed=claim, job=job, lease_until=now + 15, deadline=now + 60))
        clock.jump(timedelta(hours=1))
        Heartbeat(hf.store, in_flight, hf.settings, clock, holder="a").beat()
        expires_at = hf.snapshot(run.id).expires_at
    assert expires_at is not None
    return expires_at - clock.now()


def test_a_renewal_is_limited_by_the_remaining_time_not_by_the_old_deadline(sqlite_url: str) -> None:
    assert lease_time_after_a_jump(sqlite_url) == timedelta(seconds=15)


def test_a_lease_that_is_renewed_up_to_the_old_deadline_after_a_clock_jump_expires_at_once(
    sqlite_url: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(Heartbeat, "_as_of_now", lambda self, running: running.lease)
    assert lease_time_after_a_jump(sqlite_url) < timedelta(0)
