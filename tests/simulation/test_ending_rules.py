"""Undo the rules of outcomes and clock jumps: the simulation must find a violation."""

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

# Ends


def test_rule_17_undone_a_stage_released_before_its_segments_exist_has_no_segments(
    monkeypatch: Patch,
) -> None:
    def is_free(row: dict[str, Any]) -> bool:
        return bool(row["missing"] == 0 and row["due_at"] is None)

    monkeypatch.setattr(promote, "_is_free", is_free)
    assert found(FEATURES) is not None


def test_rule_17_undone_a_stage_that_is_not_expanded_never_ends(monkeypatch: Patch) -> None:
    monkeypatch.setattr(fan_out, "stages", lambda tx, *, limit: 0)
    assert "never end" in (found(FEATURES) or "")


def test_rule_9_undone_a_build_request_that_is_never_settled_blocks_its_run_forever(monkeypatch: Patch) -> None:
    monkeypatch.setattr(build_requests, "resolve", lambda tx, *, limit: 0)
    assert "never end" in (found(FEATURES, first=14) or "")


def test_the_oracle_finds_children_of_a_failed_run_that_are_not_cancelled(monkeypatch: Patch) -> None:
    monkeypatch.setattr(cancel_children, "children", lambda tx, *, limit: 0)
    assert "pending action undone" in (found(FEATURES, first=3) or "")


def test_the_oracle_finds_a_rate_that_claims_ignore(monkeypatch: Patch) -> None:
    monkeypatch.setattr(rates, "decide", lambda tx, runs: rates.RateDecision())
    assert "starts of a rate" in (found(FEATURES) or "")


def test_rule_13_undone_a_crash_erases_an_accepted_cancel(monkeypatch: Patch) -> None:
    decide = recover.decide

    def forgetful(tx: Transaction, lease: Lease, policy: Policy, **given: Any) -> Any:
        return decide(tx, replace(lease, cancel_requested_at=None), policy, **given)

    monkeypatch.setattr(recover, "decide", forgetful)
    assert "cancelled" in (found(Odds(features=0, crash=0.01), first=39) or "")


def test_rule_13_undone_a_retry_erases_an_accepted_cancel(monkeypatch: Patch) -> None:
    monkeypatch.setattr(finish, "_unless_cancelled", lambda lease, outcome: outcome)
    assert "cancelled" in (found(Odds(features=0, clients=3), first=18) or "")


def test_rule_14_undone_an_outage_is_mistaken_for_a_timeout(monkeypatch: Patch) -> None:
    """Judged by the time at which it is noticed."""

    def noticed(tx: Transaction, lease: Lease, **_: Any) -> bool:
        return lease.deadline_at is not None and lease.deadline_at <= tx.now

    monkeypatch.setattr(recover, "_timed_out", noticed)
    problem = found(replace(QUIET, crash=0.02, workers=2)) or ""
    assert "before the deadline" in problem or "failure of its own" in problem


# Takeover


def test_rule_19_undone_a_lease_is_recovered_as_soon_as_it_is_seen_expired(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Settings, "proof_for", timedelta(seconds=6))
    monkeypatch.setattr(Settings, "takeover_wait", timedelta(0))
    assert "taken away" in (found(BLOCKED) or "")


def test_rule_19_undone_a_renewal_that_keeps_the_expired_mark_loses_its_lease_later() -> None:
    kept = broken("sqlite", "renew_leases", "expired_seen_at = null", "expired_seen_at = expired_seen_at")
    assert "taken away" in (found(replace(QUIET, block_one=0.04), replaced=kept, first=7) or "")


def test_rule_19_undone_an_orchestrator_that_must_be_older_than_a_lease_takes_nothing_over(
    monkeypatch: Patch,
) -> None:
    can_judge, born = Orchestrator._may_take_over, WeakKeyDictionary[Orchestrator, float]()

    def old_enough(self: Orchestrator) -> bool:
        age = self._clock.elapsed() - born.setdefault(self, self._clock.elapsed())
        return age >= self._settings.lease.total_seconds() and can_judge(self)

    monkeypatch.setattr(Orchestrator, "_may_take_over", old_enough)
    assert "no one takes over" in (found(CHURNING) or "")


def test_rule_19_undone_a_worker_that_mistakes_a_locked_database_for_a_lost_lease_stops_its_runs(
    monkeypatch: Patch,
) -> None:
    monkeypatch.setattr(Heartbeat, "confirm_leases", lambda self: None)
    assert "its worker lives" in (found(BLOCKED, first=8) or "")


def test_rule_19_undone_a_worker_that_ignores_the_expired_mark_continues_a_run_of_another(
    monkeypatch: Patch,
) -> None:
    marks = lease_marks
    monkeypatch.setattr("holdfast.worker.heartbeat.lease_marks", lambda tx, holder: dict.fromkeys(marks(tx, holder)))
    alone = replace(QUIET, block_one=0.01)
    assert found(alone, first=8) is not None


def test_rule_19_a_worker_that_alone_cannot_write_stops_its_runs_in_time() -> None:
    assert found(replace(QUIET, block_one=0.01), seeds=5) is None


# Clocks


def test_rule_19_undone_a_clock_jump_takes_runs_from_live_workers(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Orchestrator, "_may_take_over", lambda self: True)
    assert found(Odds(features=0, clock_step=0.02), first=7) is not None


def test_rule_19_undone_an_orchestrator_that_ignores_clock_jumps_takes_runs_from_live_workers(
    monkeypatch: Patch,
) -> None:
    """Its own clock has not jumped, because it has not asked."""
    monkeypatch.setattr(Store, "follow_clock", lambda self: None)
    assert found(Odds(features=0, clock_step=0.02), first=6) is not None


def test_rule_19_undone_a_run_starts_after_the_lease_of_its_late_claim_has_expired(monkeypatch: Patch) -> None:
    too_late = Deadlines.too_late
    monkeypatch.setattr(
        Deadlines, "too_late", lambda self, running: running in self._in_flight.all() and too_late(self, running)
    )
    stalling = Odds(features=0, stall=0.2, crash=0, pause=0, clock_step=0, shutdown=0, operations=12, chaos_for=90)
    assert found(replace(stalling, workers=4, concurrency=2), first=40) is not None


def left_after_a_jump(url: str) -> timedelta:
    """How much is left of a lease that was renewed after the clock jumped over the run's deadline."""
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


def test_rule_14_a_renewal_is_limited_by_the_remaining_time(sqlite_url: str) -> None:
    assert left_after_a_jump(sqlite_url) == timedelta(seconds=15)


def test_rule_14_undone_a_lease_renewed_to_a_deadline_after_a_clock_jump_expires_at_once(
    sqlite_url: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(Heartbeat, "_as_of_now", lambda self, running: running.lease)
    assert left_after_a_jump(sqlite_url) < timedelta(0)
