"""Every transition of a run by every role: other roles are refused or change nothing.

ALLOWED has the place to which each verb of a role moves a run from each place; every other pair must leave the run
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Holdfast, LeaseLost
from holdfast.orchestrator import promote, recover
from holdfast.runs import steps
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import Lease, renew_leases, require_lease
from holdfast.runs.outcomes import Outcome, Release, RetryLater, Succeeded
from holdfast.runs.submission import Submission
from holdfast.runs.submit import submit_runs
from holdfast.testing import FakeClock, Manual
from holdfast.values.runs import Step

HOLDER, STRANGER = "holder", "stranger"


class Scenario:
    """One run in one place, with what the verbs need."""

    def __init__(self, hf: Holdfast, clock: FakeClock) -> None:
        self.hf, self.clock, self.manual = hf, clock, Manual(hf)
        self.job = hf.job(name="work", max_attempts=3)(lambda: None)
        self.needed = self.job.using(queue="elsewhere").submit().id
        self.claim: ClaimedRun | None = None
        self.submission: Submission | None = None

    def submit(self, **options: Any) -> str:
        job = self.job.using(**options)
        now = self.clock.now()
        self.submission = job.submission(self.hf.ids.new(now), job.options, (), {}, now=now)
        [answer] = self.hf.do(lambda tx: submit_runs(tx, [self._submission]))
        assert isinstance(answer, str)
        return answer

    @property
    def _submission(self) -> Submission:
        assert self.submission is not None
        return self.submission

    def lease(self) -> Lease:
        """The run's lease, or a forged one if it has none."""
        if self.claim is not None:
            return self.claim.lease
        now = self.clock.now()
        entry = self._submission.entry.changed(claim=1, attempt=1)
        return Lease(entry=entry, holder=HOLDER, started_at=now, expires_at=now, deadline_at=None)


# The places of a run


def waiting_for_its_time(scenario: Scenario) -> str:
    return scenario.submit(delay=100)


def waiting_for_a_dependency(scenario: Scenario) -> str:
    return scenario.submit(depends_on=[scenario.needed])


def waiting_for_its_turn(scenario: Scenario) -> str:
    scenario.job.using(key=lambda: "k").submit()
    return scenario.submit(key=lambda: "k")


def waiting_and_due(scenario: Scenario) -> str:
    run = scenario.submit(delay=10)
    scenario.clock.advance(11)
    return run


def is_ready(scenario: Scenario) -> str:
    return scenario.submit(priority=9)


def running(scenario: Scenario) -> str:
    run = scenario.submit(priority=9)
    [scenario.claim] = scenario.manual.worker(HOLDER).claim()
    return run


def running_and_expired(scenario: Scenario) -> str:
    run = running(scenario)
    scenario.clock.advance(2 * scenario.hf.settings.lease)
    return run


def ended(scenario: Scenario) -> str:
    run = running(scenario)
    assert scenario.claim is not None
    scenario.manual.worker(HOLDER).finish(scenario.claim)
    return run


PLACES = [
    waiting_for_its_time,
    waiting_for_a_dependency,
    waiting_for_its_turn,
    waiting_and_due,
    is_ready,
    running,
    running_and_expired,
    ended,
]


# The verbs of each role


def submitter_submits_it_again(scenario: Scenario) -> None:
    scenario.hf.do(lambda tx: submit_runs(tx, [scenario._submission]))


def operator_cancels(scenario: Scenario) -> None:
    scenario.hf.cancel(scenario._submission.run_id)


def orchestrator_promotes(scenario: Scenario) -> None:
    scenario.manual.promote()


def orchestrator_promotes_its_dependents(scenario: Scenario) -> None:
    """Promote its dependents as if it had ended, even if it has not."""
    scenario.hf.do(lambda tx: promote.dependents(tx, [scenario._submission.run_id, scenario.needed], limit=10))


def orchestrator_recovers(scenario: Scenario) -> None:
    scenario.hf.do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=10))


def worker_claims(scenario: Scenario) -> None:
    scenario.manual.worker(STRANGER).claim(limit=9)


def worker_that_does_not_know_the_job_claims(scenario: Scenario) -> None:
    assert scenario.manual.worker(STRANGER, jobs=["other"]).claim(limit=9) == []


def _finish(scenario: Scenario, outcome: Outcome, *, holder: str, lease: Lease) -> None:
    scenario.hf.do(lambda tx: finish_runs(tx, [(lease, outcome)], holder=holder))


def holder_finishes(scenario: Scenario) -> None:
    _finish(scenario, Succeeded(), holder=HOLDER, lease=scenario.lease())


def holder_retries_later(scenario: Scenario) -> None:
    _finish(scenario, RetryLater("again", timedelta(seconds=50)), holder=HOLDER, lease=scenario.lease())


def holder_releases(scenario: Scenario) -> None:
    _finish(scenario, Release("it stops"), holder=HOLDER, lease=scenario.lease())


def stranger_finishes(scenario: Scenario) -> None:
    _finish(scenario, Succeeded(), holder=STRANGER, lease=scenario.lease())


def stranger_releases(scenario: Scenario) -> None:
    _finish(scenario, Release("it stops"), holder=STRANGER, lease=scenario.lease())


def stale_claim_finishes(scenario: Scenario) -> None:
    lease = scenario.lease()
    stale = replace(lease, entry=lease.entry.changed(claim=lease.claim - 1))
    _finish(scenario, Succeeded(), holder=HOLDER, lease=stale)


def holder_renews(scenario: Scenario) -> None:
    _renew(scenario, HOLDER)


def stranger_renews(scenario: Scenario) -> None:
    _renew(scenario, STRANGER)


def _renew(scenario: Scenario, holder: str) -> None:
    settings = scenario.hf.settings
    scenario.hf.do(
        lambda tx: renew_leases(
            tx, [scenario.lease()], holder=holder, lease_for=2 * settings.lease, kill_grace=settings.kill_grace
        )
    )


def stranger_writes_a_step(scenario: Scenario) -> None:
    lease = replace(scenario.lease(), holder=STRANGER)
    now = scenario.clock.now()
    step = Step(name="step", result="1", claim=lease.claim, attempts=1, started_at=now, finished_at=now)

    def write(tx: Any) -> None:
        require_lease(tx, lease)
        steps.insert(tx, [(lease.run_id, step)])

    with pytest.raises(LeaseLost):
        scenario.hf.do(write)


VERBS = [
    submitter_submits_it_again,
    operator_cancels,
    orchestrator_promotes,
    orchestrator_promotes_its_dependents,
    orchestrator_recovers,
    worker_claims,
    worker_that_does_not_know_the_job_claims,
    holder_finishes,
    holder_retries_later,
    holder_releases,
    holder_renews,
    stale_claim_finishes,
    stranger_finishes,
    stranger_releases,
    stranger_renews,
    stranger_writes_a_step,
]

Place = Callable[[Scenario], str]
Verb = Callable[[Scenario], None]

ALLOWED: dict[Verb, dict[Place, str]] = {
    operator_cancels: {
        waiting_for_its_time: "outcomes",
        waiting_for_a_dependency: "outcomes",
        waiting_for_its_turn: "outcomes",
        waiting_and_due: "outcomes",
        is_ready: "outcomes",
        running: "leases",
        running_and_expired: "leases",
    },
    orchestrator_promotes: {waiting_and_due: "ready"},
    orchestrator_recovers: {running_and_expired: "ready"},
    worker_claims: {is_ready: "leases"},
    holder_finishes: {running: "outcomes", running_and_expired: "outcomes"},
    holder_retries_later: {running: "waits", running_and_expired: "waits"},
    holder_releases: {running: "ready", running_and_expired: "ready"},
    holder_renews: {running: "leases", running_and_expired: "leases"},
}


@pytest.mark.contract("L2", "L5", "P4", "P8", "Q12")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_each_role_makes_only_its_own_run_transitions(verb: Verb, place: Place, hf: Holdfast, clock: FakeClock) -> None:
    scenario = Scenario(hf, clock)
    run = place(scenario)
    before = hf.snapshot(run)

    verb(scenario)

    after = hf.snapshot(run)
    if (expected := ALLOWED.get(verb, {}).get(place)) is not None:
        assert after.place == expected
        assert after != before
    else:
        assert after == before
    assert hf.read(lambda tx: steps.of(tx, run)) == []
    assert hf.verify() == []
