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


class Scenario:
    """A pipeline of two stages; the verbs act on the second, `tried`."""

    def __init__(self, hf: Holdfast, clock: FakeClock) -> None:
        self.hf, self.clock, self.manual = hf, clock, Manual(hf)
        self.pipeline = hf.pipeline("scenario")

        @self.pipeline.stage(priority=1)
        def before() -> list[int]:
            return [1, 2]

        @self.pipeline.stage(after=before, max_attempts=2, retry=Retry(delay=100, jitter=0))
        def tried(ctx: Context) -> int:
            raise OSError("not now")

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
        [shown] = [
            stage.state for stage in self.hf.pipelines.show(self.submission.run_id).stages if stage.name == "tried"
        ]
        assert shown == state
        return f"{state} for good" if run.ended else state

    def lease(self) -> Lease:
        """The stage's lease, or a forged one if it has none."""
        if self.claim is not None:
            return self.claim.lease
        now = self.clock.now()
        entry = QueueEntry(
            run_id=self.tried, job="scenario.tried", queue="default", rank=0, key=None, claim=1, attempt=1
        )
        return Lease(entry=entry, holder=HOLDER, started_at=now, expires_at=now, deadline_at=None)


# The states of the stage


def new(scenario: Scenario) -> None:
    """The stage before it has not ended."""


def new_and_met(scenario: Scenario) -> None:
    """The stage before it has ended, but no orchestrator has checked yet."""
    scenario.work()


def ready(scenario: Scenario) -> None:
    scenario.work()
    scenario.manual.orchestrate()


def running(scenario: Scenario) -> None:
    ready(scenario)
    [scenario.claim] = scenario.manual.worker(HOLDER).claim()


def error(scenario: Scenario) -> None:
    """It has failed and will be retried later."""
    ready(scenario)
    scenario.work()


def error_and_due(scenario: Scenario) -> None:
    error(scenario)
    scenario.clock.advance(101)


def error_for_good(scenario: Scenario) -> None:
    error_and_due(scenario)
    scenario.manual.promote()
    scenario.work()


def done(scenario: Scenario) -> None:
    running(scenario)
    holder_completes(scenario)


STATES: dict[Callable[[Scenario], None], str] = {
    new: "NEW",
    new_and_met: "NEW",
    ready: "READY",
    running: "RUNNING",
    error: "ERROR",
    error_and_due: "ERROR",
    error_for_good: "ERROR for good",
    done: "DONE for good",
}


# The verbs of each role


def submitter_submits_the_pipeline_again(scenario: Scenario) -> None:
    scenario.hf.do(lambda tx: submit_runs(tx, [scenario.submission]))


def submitter_submits_the_stage(scenario: Scenario) -> None:
    with pytest.raises(InvalidPolicy):
        scenario.pipeline.stages["tried"].submit()


def operator_runs_the_stage_again(scenario: Scenario) -> None:
    with pytest.raises(InvalidPolicy):
        scenario.hf.again(scenario.tried)


def operator_reruns_the_pipeline(scenario: Scenario) -> None:
    with suppress(StageNotDone):
        scenario.hf.pipelines.rerun(scenario.submission.run_id, from_stage="tried")


def operator_cancels(scenario: Scenario) -> None:
    scenario.hf.cancel(scenario.tried)


def orchestrator_promotes(scenario: Scenario) -> None:
    scenario.manual.promote()


def orchestrator_promotes_its_dependents(scenario: Scenario) -> None:
    """Promote the dependents of both stages as if these had ended, even if they have not."""
    scenario.hf.do(lambda tx: promote.dependents(tx, [scenario.first, scenario.tried], limit=10))


def orchestrator_expands_and_stops(scenario: Scenario) -> None:
    scenario.hf.do(lambda tx: fan_out.stages(tx, limit=10))
    scenario.hf.do(lambda tx: cancel_children.children(tx, limit=10))


def orchestrator_recovers(scenario: Scenario) -> None:
    scenario.hf.do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=10))


def worker_claims(scenario: Scenario) -> None:
    scenario.manual.worker(STRANGER, jobs=["scenario.tried"]).claim(limit=9)


def _finish(scenario: Scenario, outcome: Outcome, *, holder: str) -> None:
    scenario.hf.do(lambda tx: finish_runs(tx, [(scenario.lease(), outcome)], holder=holder))


def holder_completes(scenario: Scenario) -> None:
    _finish(scenario, Succeeded("1"), holder=HOLDER)


def holder_fails(scenario: Scenario) -> None:
    _finish(scenario, Failed("ERROR", "no"), holder=HOLDER)


def holder_fails_for_now(scenario: Scenario) -> None:
    _finish(scenario, RetryLater("again", timedelta(seconds=50)), holder=HOLDER)


def holder_waits_for_children(scenario: Scenario) -> None:
    _finish(scenario, WaitForChildren((scenario.submission.run_id,)), holder=HOLDER)


def holder_releases(scenario: Scenario) -> None:
    _finish(scenario, Release("it stops"), holder=HOLDER)


def stranger_completes(scenario: Scenario) -> None:
    _finish(scenario, Succeeded("1"), holder=STRANGER)


def stranger_fails(scenario: Scenario) -> None:
    _finish(scenario, Failed("ERROR", "no"), holder=STRANGER)


def stranger_waits_for_children(scenario: Scenario) -> None:
    _finish(scenario, WaitForChildren((scenario.first,)), holder=STRANGER)


def stranger_releases(scenario: Scenario) -> None:
    _finish(scenario, Release("it stops"), holder=STRANGER)


VERBS = [
    submitter_submits_the_pipeline_again,
    submitter_submits_the_stage,
    operator_runs_the_stage_again,
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

Place = Callable[[Scenario], None]
Verb = Callable[[Scenario], None]

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
    scenario = Scenario(hf, clock)
    place(scenario)
    assert scenario.state() == STATES[place]

    with suppress(HoldfastError):
        verb(scenario)

    assert scenario.state() == ALLOWED.get(verb, {}).get(place, STATES[place])
    assert hf.verify() == []


@pytest.mark.contract("L2")
def test_neither_a_worker_nor_an_orchestrator_alone_finishes_a_stage(hf: Holdfast, clock: FakeClock) -> None:
    scenario = Scenario(hf, clock)
    for _ in range(3):
        scenario.manual.orchestrate()
        clock.advance(1000)
    assert scenario.state() == "NEW", "an orchestrator executes no stage"

    scenario.work()
    for _ in range(3):
        assert scenario.manual.worker(jobs=hf.jobs.names()).claim(limit=9) == []
        clock.advance(1000)
    assert scenario.state() == "NEW", "a worker makes no stage ready"
