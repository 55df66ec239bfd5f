"""Every transition of a stage by every role: other roles are refused or change nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from holdfast import Context, Holdfast, HoldfastError, InvalidPolicy, Retry, StageNotDone
from holdfast.orchestrator import cancel_children, fan_out, promote, recover
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import Lease
from holdfast.runs.outcomes import Failed, Outcome, Release, RetryLater, Succeeded, WaitForChildren
from holdfast.runs.queue_entry import QueueEntry
from holdfast.runs.submit import submit_runs
from holdfast.testing import FakeClock, Manual
from holdfast.values.pipelines import state_of

HOLDER, STRANGER = "holder", "stranger"


class Scene:
    """A pipeline of two stages; the second is the one that is tried."""

    def __init__(self, hf: Holdfast, clock: FakeClock) -> None:
        self.hf, self.clock, self.manual = hf, clock, Manual(hf)
        self.pipeline = hf.pipeline("scene")

        @self.pipeline.stage(priority=1)
        def before() -> list[int]:
            return [1, 2]

        @self.pipeline.stage(after=before, max_attempts=2, retry=Retry(delay=100, jitter=0))
        def tried(ctx: Context) -> int:
            raise OSError("as told")

        self.submission = self.pipeline.submission(
            hf.ids.new(clock.now()), self.pipeline.options, (), {}, now=clock.now()
        )
        hf.do(lambda tx: submit_runs(tx, [self.submission]))
        self.manual.promote()
        self.first, self.tried = (stage.run_id for stage in hf.pipelines.show(self.submission.run_id).stages)
        self.claim: ClaimedRun | None = None

    def work(self) -> None:
        worker = self.manual.worker(HOLDER)
        worker.work(worker.claim()[0])

    def state(self) -> str:
        run = self.hf.snapshot(self.tried)
        state = state_of(
            run.place, run.state, retrying=run.due_at is not None and run.attempt > 0, claimed=run.claim > 0
        )
        [told] = [
            stage.state for stage in self.hf.pipelines.show(self.submission.run_id).stages if stage.name == "tried"
        ]
        assert told == state
        return f"{state} for good" if run.ended else state

    def lease(self) -> Lease:
        """The stage's lease; where there is none, one made up by someone who read too much of the database."""
        if self.claim is not None:
            return self.claim.lease
        now = self.clock.now()
        entry = QueueEntry(run_id=self.tried, job="scene.tried", queue="default", rank=0, key=None, claim=1, attempt=1)
        return Lease(entry=entry, holder=HOLDER, started_at=now, expires_at=now, deadline_at=None)


# Where the stage stands


def new(scene: Scene) -> None:
    """What it comes after has not ended."""


def new_and_met(scene: Scene) -> None:
    """What it comes after has ended; no orchestrator has looked."""
    scene.work()


def ready(scene: Scene) -> None:
    scene.work()
    scene.manual.orchestrate()


def running(scene: Scene) -> None:
    ready(scene)
    [scene.claim] = scene.manual.worker(HOLDER).claim()


def error(scene: Scene) -> None:
    """It failed and is to be tried again, later."""
    ready(scene)
    scene.work()


def error_and_due(scene: Scene) -> None:
    error(scene)
    scene.clock.advance(101)


def error_for_good(scene: Scene) -> None:
    error_and_due(scene)
    scene.manual.promote()
    scene.work()


def done(scene: Scene) -> None:
    running(scene)
    holder_completes(scene)


STATES: dict[Callable[[Scene], None], str] = {
    new: "NEW",
    new_and_met: "NEW",
    ready: "READY",
    running: "RUNNING",
    error: "ERROR",
    error_and_due: "ERROR",
    error_for_good: "ERROR for good",
    done: "DONE for good",
}


# What each role may try


def submitter_submits_the_pipeline_again(scene: Scene) -> None:
    scene.hf.do(lambda tx: submit_runs(tx, [scene.submission]))


def submitter_submits_the_stage(scene: Scene) -> None:
    with pytest.raises(InvalidPolicy):
        scene.pipeline.stages["tried"].submit()


def operator_does_the_stage_again(scene: Scene) -> None:
    with pytest.raises(InvalidPolicy):
        scene.hf.again(scene.tried)


def operator_reruns_the_pipeline(scene: Scene) -> None:
    with suppress(StageNotDone):
        scene.hf.pipelines.rerun(scene.submission.run_id, from_stage="tried")


def operator_cancels(scene: Scene) -> None:
    scene.hf.cancel(scene.tried)


def orchestrator_promotes(scene: Scene) -> None:
    scene.manual.promote()


def orchestrator_promotes_its_dependents(scene: Scene) -> None:
    """Told that both have ended, true or not."""
    scene.hf.do(lambda tx: promote.dependents(tx, [scene.first, scene.tried], limit=10))


def orchestrator_expands_and_stops(scene: Scene) -> None:
    scene.hf.do(lambda tx: fan_out.stages(tx, limit=10))
    scene.hf.do(lambda tx: cancel_children.children(tx, limit=10))


def orchestrator_recovers(scene: Scene) -> None:
    scene.hf.do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=10))


def worker_claims(scene: Scene) -> None:
    scene.manual.worker(STRANGER, jobs=["scene.tried"]).claim(limit=9)


def _finish(scene: Scene, outcome: Outcome, *, holder: str) -> None:
    scene.hf.do(lambda tx: finish_runs(tx, [(scene.lease(), outcome)], holder=holder))


def holder_completes(scene: Scene) -> None:
    _finish(scene, Succeeded("1"), holder=HOLDER)


def holder_fails(scene: Scene) -> None:
    _finish(scene, Failed("ERROR", "no"), holder=HOLDER)


def holder_fails_for_now(scene: Scene) -> None:
    _finish(scene, RetryLater("again", timedelta(seconds=50)), holder=HOLDER)


def holder_waits_for_children(scene: Scene) -> None:
    _finish(scene, WaitForChildren((scene.submission.run_id,)), holder=HOLDER)


def holder_releases(scene: Scene) -> None:
    _finish(scene, Release("it stops"), holder=HOLDER)


def stranger_completes(scene: Scene) -> None:
    _finish(scene, Succeeded("1"), holder=STRANGER)


def stranger_fails(scene: Scene) -> None:
    _finish(scene, Failed("ERROR", "no"), holder=STRANGER)


def stranger_waits_for_children(scene: Scene) -> None:
    _finish(scene, WaitForChildren((scene.first,)), holder=STRANGER)


def stranger_releases(scene: Scene) -> None:
    _finish(scene, Release("it stops"), holder=STRANGER)


VERBS = [
    submitter_submits_the_pipeline_again,
    submitter_submits_the_stage,
    operator_does_the_stage_again,
    operator_reruns_the_pipeline,
    operator_cancels,
    orchestrator_promotes,
    orchestrator_promotes_its_dependents,
    orchestrator_expands_and_stops,
    orchestrator_recovers,
    worker_claims,
    holder_completes,
    holder_fails,
    holder_fails_for_now,
    holder_waits_for_children,
    holder_releases,
    stranger_completes,
    stranger_fails,
    stranger_waits_for_children,
    stranger_releases,
]

Place = Callable[[Scene], None]
Verb = Callable[[Scene], None]

ALLOWED: dict[Verb, dict[Place, str]] = {
    orchestrator_promotes: {new_and_met: "READY", error_and_due: "READY"},
    orchestrator_promotes_its_dependents: {new_and_met: "READY"},
    worker_claims: {ready: "RUNNING"},
    holder_completes: {running: "DONE for good"},
    holder_fails: {running: "ERROR for good"},
    holder_fails_for_now: {running: "ERROR"},
    holder_waits_for_children: {running: "NEW"},
    holder_releases: {running: "READY"},
    operator_cancels: {
        new: "NEW for good",
        new_and_met: "NEW for good",
        ready: "NEW for good",
        error: "ERROR for good",
        error_and_due: "ERROR for good",
    },
}


@pytest.mark.contract("L1", "L2")
@pytest.mark.parametrize("place", STATES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_each_role_makes_only_its_own_stage_transitions(
    verb: Verb, place: Place, hf: Holdfast, clock: FakeClock
) -> None:
    scene = Scene(hf, clock)
    place(scene)
    assert scene.state() == STATES[place]

    with suppress(HoldfastError):
        verb(scene)

    assert scene.state() == ALLOWED.get(verb, {}).get(place, STATES[place])
    assert hf.verify() == []


@pytest.mark.contract("L2")
def test_neither_a_worker_nor_an_orchestrator_alone_finishes_a_stage(hf: Holdfast, clock: FakeClock) -> None:
    scene = Scene(hf, clock)
    for _ in range(3):
        scene.manual.orchestrate()
        clock.advance(1000)
    assert scene.state() == "NEW", "an orchestrator does no work"

    scene.work()
    for _ in range(3):
        assert scene.manual.worker(jobs=hf.jobs.names()).claim(limit=9) == []
        clock.advance(1000)
    assert scene.state() == "NEW", "a worker advances no stage"
