"""Undo the rules of how runs end and of clocks that jump: the simulation must find it, as in `test_rules`."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

from tests.mutants.statements import broken
from tests.simulation.undoing import FEATURES, Patch, found
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


def test_rule_17_undone_a_stage_that_is_let_go_before_its_segments_are_made_comes_to_nothing(
    monkeypatch: Patch,
) -> None:
    def is_free(row: dict[str, Any]) -> bool:
        return bool(row["missing"] == 0 and row["due_at"] is None)

    monkeypatch.setattr(promote, "_is_free", is_free)
    assert found(FEATURES) is not None


def test_rule_17_undone_a_stage_that_is_not_expanded_never_ends(monkeypatch: Patch) -> None:
    monkeypatch.setattr(fan_out, "stages", lambda tx, *, limit: 0)
    assert "never end" in (found(FEATURES) or "")


def test_rule_9_undone_a_build_that_no_orchestrator_gets_is_waited_for_for_ever(monkeypatch: Patch) -> None:
    monkeypatch.setattr(build_requests, "settle", lambda tx, *, limit: 0)
    assert "never end" in (found(FEATURES, first=10) or "")


def test_children_of_what_ended_badly_are_stopped_or_the_oracle_says_so(monkeypatch: Patch) -> None:
    monkeypatch.setattr(cancel_children, "children", lambda tx, *, limit: 0)
    assert "errand undone" in (found(FEATURES) or "")


def test_a_rate_that_no_claim_asks_is_broken(monkeypatch: Patch) -> None:
    monkeypatch.setattr(rates, "judge", lambda tx, runs: rates.Judgement())
    assert "starts of a rate" in (found(FEATURES) or "")


def test_rule_13_undone_a_crash_erases_an_accepted_cancel(monkeypatch: Patch) -> None:
    decide = recover.decide

    def forgetful(tx: Transaction, lease: Lease, policy: Policy, **given: Any) -> Any:
        return decide(tx, replace(lease, cancel_requested_at=None), policy, **given)

    monkeypatch.setattr(recover, "decide", forgetful)
    assert "cancelled" in (found(Odds(features=0, crash=0.01), first=22) or "")


def test_rule_13_undone_a_retry_erases_an_accepted_cancel(monkeypatch: Patch) -> None:
    monkeypatch.setattr(finish, "_heeding_cancel", lambda lease, outcome: outcome)
    assert "cancelled" in (found(Odds(features=0, clients=3), first=18) or "")


def test_rule_14_undone_an_outage_is_taken_for_a_timeout(monkeypatch: Patch) -> None:
    """Judged by the time at which it is noticed."""

    def noticed(tx: Transaction, lease: Lease, **_: Any) -> bool:
        return lease.deadline_at is not None and lease.deadline_at <= tx.now

    monkeypatch.setattr(recover, "_timed_out", noticed)
    problem = found(replace(QUIET, crash=0.02, workers=2)) or ""
    assert "before the deadline" in problem or "failure of its own" in problem


# Takeover


def test_rule_19_undone_a_lease_is_taken_away_as_soon_as_it_is_seen_expired(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Settings, "proof_for", timedelta(seconds=6))
    monkeypatch.setattr(Settings, "takeover_wait", timedelta(0))
    assert "taken away" in (found(BLOCKED) or "")


def test_rule_19_undone_a_renewal_that_leaves_the_mark_loses_its_lease_later() -> None:
    kept = broken("sqlite", "renew_leases", "expired_seen_at = null", "expired_seen_at = expired_seen_at")
    assert "taken away" in (found(replace(QUIET, block_one=0.04), replaced=kept) or "")


def test_rule_19_undone_an_orchestrator_that_must_be_older_than_a_lease_takes_nothing_over(
    monkeypatch: Patch,
) -> None:
    can_judge, born = Orchestrator._can_judge, WeakKeyDictionary[Orchestrator, float]()

    def old_enough(self: Orchestrator) -> bool:
        age = self._clock.elapsed() - born.setdefault(self, self._clock.elapsed())
        return age >= self._settings.lease.total_seconds() and can_judge(self)

    monkeypatch.setattr(Orchestrator, "_can_judge", old_enough)
    assert "no one takes over" in (found(CHURNING) or "")


def test_rule_19_undone_a_worker_that_takes_a_locked_database_for_a_lost_lease_stops_its_work(
    monkeypatch: Patch,
) -> None:
    monkeypatch.setattr(Heartbeat, "prove", lambda self: None)
    assert "its worker lives" in (found(BLOCKED, first=5) or "")


def test_rule_19_undone_a_worker_that_ignores_the_mark_goes_on_with_a_run_that_another_has(
    monkeypatch: Patch,
) -> None:
    marks = lease_marks
    monkeypatch.setattr("holdfast.worker.heartbeat.lease_marks", lambda tx, holder: dict.fromkeys(marks(tx, holder)))
    alone = replace(QUIET, block_one=0.01)
    assert found(alone) is not None


def test_rule_19_a_worker_that_alone_can_not_write_stops_its_work_in_time() -> None:
    assert found(replace(QUIET, block_one=0.01), seeds=5) is None


# Clocks


def test_rule_19_undone_a_clock_that_jumps_takes_runs_from_workers_that_do_them(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Orchestrator, "_can_judge", lambda self: True)
    assert found(Odds(features=0, clock_step=0.02)) is not None


def test_rule_19_undone_a_judge_that_does_not_follow_the_clock_takes_runs_from_workers(monkeypatch: Patch) -> None:
    """Its own clock has not jumped, because it has not asked."""
    monkeypatch.setattr(Store, "follow_clock", lambda self: None)
    assert found(Odds(features=0, clock_step=0.02)) is not None


def test_rule_19_undone_a_claim_that_is_answered_after_its_lease_is_started(monkeypatch: Patch) -> None:
    too_late = Deadlines.too_late
    monkeypatch.setattr(
        Deadlines, "too_late", lambda self, running: running in self._in_flight.all() and too_late(self, running)
    )
    stalling = Odds(features=0, stall=0.2, crash=0, pause=0, clock_step=0, shutdown=0, operations=12, chaos_for=90)
    assert found(replace(stalling, workers=4, concurrency=2), first=22) is not None


def left_after_a_jump(url: str) -> timedelta:
    """How much is left of a lease that was renewed after the clock jumped over the run's deadline."""
    clock = FakeClock()
    with Holdfast(url, clock=clock, ids=Ids(seed=1)) as hf:
        job = hf.job(name="free", timeout=60)(lambda: None)
        run = job.submit()
        [claim] = Manual(hf).worker("a").claim()
        now = clock.elapsed()
        in_flight = InFlight()
        in_flight.take(RunInFlight(claim=claim, job=job, lease_until=now + 15, deadline=now + 60))
        clock.step(timedelta(hours=1))
        Heartbeat(hf.store, in_flight, hf.settings, clock, holder="a").beat()
        expires_at = hf.snapshot(run.id).expires_at
    assert expires_at is not None
    return expires_at - clock.now()


def test_rule_14_a_renewal_goes_by_the_time_that_is_left(sqlite_url: str) -> None:
    assert left_after_a_jump(sqlite_url) == timedelta(seconds=15)


def test_rule_14_undone_a_lease_renewed_up_to_a_deadline_that_has_jumped_is_over_at_once(
    sqlite_url: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(Heartbeat, "_as_of_now", lambda self, running: running.lease)
    assert left_after_a_jump(sqlite_url) < timedelta(0)
