"""Every transition of a run by every role: other roles are refused or change nothing.

The table says where each verb of each role takes a run from each place; a pair that is not in it must leave the run
exactly as it stood.
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


class Scene:
    """One run in one place, and what each role may try on it."""

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
        """The run's lease; where there is none, one made up by someone who read too much of the database."""
        if self.claim is not None:
            return self.claim.lease
        now = self.clock.now()
        entry = self._submission.entry.changed(claim=1, attempt=1)
        return Lease(entry=entry, holder=HOLDER, started_at=now, expires_at=now, deadline_at=None)


# Where a run may stand


def waiting_for_its_time(scene: Scene) -> str:
    return scene.submit(delay=100)


def waiting_for_a_dependency(scene: Scene) -> str:
    return scene.submit(depends_on=[scene.needed])


def waiting_for_its_turn(scene: Scene) -> str:
    scene.job.using(key=lambda: "k").submit()
    return scene.submit(key=lambda: "k")


def waiting_and_due(scene: Scene) -> str:
    run = scene.submit(delay=10)
    scene.clock.advance(11)
    return run


def is_ready(scene: Scene) -> str:
    return scene.submit(priority=9)


def running(scene: Scene) -> str:
    run = scene.submit(priority=9)
    [scene.claim] = scene.manual.worker(HOLDER).claim()
    return run


def running_and_expired(scene: Scene) -> str:
    run = running(scene)
    scene.clock.advance(2 * scene.hf.settings.lease)
    return run


def ended(scene: Scene) -> str:
    run = running(scene)
    assert scene.claim is not None
    scene.manual.worker(HOLDER).finish(scene.claim)
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


# What each role may try


def submitter_submits_it_again(scene: Scene) -> None:
    scene.hf.do(lambda tx: submit_runs(tx, [scene._submission]))


def operator_cancels(scene: Scene) -> None:
    scene.hf.cancel(scene._submission.run_id)


def orchestrator_promotes(scene: Scene) -> None:
    scene.manual.promote()


def orchestrator_promotes_its_dependents(scene: Scene) -> None:
    """Told that it has ended, true or not."""
    scene.hf.do(lambda tx: promote.dependents(tx, [scene._submission.run_id, scene.needed], limit=10))


def orchestrator_recovers(scene: Scene) -> None:
    scene.hf.do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=10))


def worker_claims(scene: Scene) -> None:
    scene.manual.worker(STRANGER).claim(limit=9)


def worker_that_does_not_know_the_job_claims(scene: Scene) -> None:
    assert scene.manual.worker(STRANGER, jobs=["other"]).claim(limit=9) == []


def _finish(scene: Scene, outcome: Outcome, *, holder: str, lease: Lease) -> None:
    scene.hf.do(lambda tx: finish_runs(tx, [(lease, outcome)], holder=holder))


def holder_finishes(scene: Scene) -> None:
    _finish(scene, Succeeded(), holder=HOLDER, lease=scene.lease())


def holder_retries_later(scene: Scene) -> None:
    _finish(scene, RetryLater("again", timedelta(seconds=50)), holder=HOLDER, lease=scene.lease())


def holder_releases(scene: Scene) -> None:
    _finish(scene, Release("it stops"), holder=HOLDER, lease=scene.lease())


def stranger_finishes(scene: Scene) -> None:
    _finish(scene, Succeeded(), holder=STRANGER, lease=scene.lease())


def stranger_releases(scene: Scene) -> None:
    _finish(scene, Release("it stops"), holder=STRANGER, lease=scene.lease())


def stale_claim_finishes(scene: Scene) -> None:
    lease = scene.lease()
    stale = replace(lease, entry=lease.entry.changed(claim=lease.claim - 1))
    _finish(scene, Succeeded(), holder=HOLDER, lease=stale)


def holder_renews(scene: Scene) -> None:
    _renew(scene, HOLDER)


def stranger_renews(scene: Scene) -> None:
    _renew(scene, STRANGER)


def _renew(scene: Scene, holder: str) -> None:
    settings = scene.hf.settings
    scene.hf.do(
        lambda tx: renew_leases(
            tx, [scene.lease()], holder=holder, lease_for=2 * settings.lease, kill_grace=settings.kill_grace
        )
    )


def stranger_writes_a_step(scene: Scene) -> None:
    lease = replace(scene.lease(), holder=STRANGER)
    now = scene.clock.now()
    step = Step(name="step", result="1", claim=lease.claim, attempts=1, started_at=now, finished_at=now)

    def write(tx: Any) -> None:
        require_lease(tx, lease)
        steps.insert(tx, [(lease.run_id, step)])

    with pytest.raises(LeaseLost):
        scene.hf.do(write)


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

Place = Callable[[Scene], str]
Verb = Callable[[Scene], None]

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
    scene = Scene(hf, clock)
    run = place(scene)
    before = hf.snapshot(run)

    verb(scene)

    after = hf.snapshot(run)
    if (expected := ALLOWED.get(verb, {}).get(place)) is not None:
        assert after.place == expected
        assert after != before
    else:
        assert after == before
    assert hf.read(lambda tx: steps.of(tx, run)) == []
    assert hf.verify() == []
