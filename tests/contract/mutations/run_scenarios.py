"""Scenarios of waiting runs, workers and builds; each passes with the unchanged statements."""

from __future__ import annotations

from tests.contract.mutations.scenario_setup import ScenarioSetup

from holdfast.orchestrator import promote
from holdfast.runs import steps, workers
from holdfast.runs.build_once import BuildRun, replace_builds
from holdfast.runs.submit import submit_runs
from holdfast.values.runs import Step
from holdfast.values.workers import WorkerInfo


def a_run_is_not_due_before_its_dependencies(on: ScenarioSetup) -> None:
    needed = on.submit(queue="elsewhere")
    needy = on.submit(depends_on=[needed], delay=10)
    on.clock.advance(11)
    on.hf.do(lambda tx: promote.due(tx, limit=10))
    assert on.place(needy) == "waits"


def a_run_is_not_due_before_its_time(on: ScenarioSetup) -> None:
    later = on.submit(delay=10)
    on.hf.do(lambda tx: promote.due(tx, limit=10))
    assert on.place(later) == "waits"


def a_check_flag_stays_while_a_dependency_is_met(on: ScenarioSetup) -> None:
    needed = on.submit()
    on.manual.worker("a").finish(on.claim("a"))
    needy = on.submit(depends_on=[needed])
    on.hf.do(lambda tx: promote.mark_checked(tx, limit=10))
    assert on.is_marked_for_check(needy)


def a_live_worker_keeps_its_exclusive_name(on: ScenarioSetup) -> None:
    assert _register(on, "one") is None
    one = _seen(on)
    assert _register(on, "two", silent=one) == "one"


def a_worker_that_was_seen_again_keeps_its_exclusive_name(on: ScenarioSetup) -> None:
    assert _register(on, "one") is None
    before = _seen(on)
    on.clock.advance(on.hf.settings.lease / 2)
    on.hf.do(lambda tx: workers.beat(tx, "one", lease_for=on.hf.settings.lease, stopping=False))
    on.clock.advance(2 * on.hf.settings.lease)
    assert _register(on, "two", silent=before) == "one"
    assert _register(on, "two", silent=_seen(on)) is None


def a_worker_claims_only_jobs_that_it_knows(on: ScenarioSetup) -> None:
    on.other.submit()
    assert on.manual.worker("a", jobs=["work"]).claim() == []


def a_worker_claims_only_from_its_queues(on: ScenarioSetup) -> None:
    on.submit(queue="elsewhere")
    assert on.manual.worker("a").claim() == []


def _seen(on: ScenarioSetup) -> WorkerInfo:
    row = on.hf.read(lambda tx: tx.one("find_exclusive", exclusive="only"))
    assert row is not None
    return workers.info(row)


def _register(on: ScenarioSetup, name: str, *, silent: WorkerInfo | None = None) -> str | None:
    info = WorkerInfo(
        id=name,
        host="host",
        pid=1,
        version="0",
        queues=["default"],
        jobs=["work"],
        concurrency=1,
        exclusive="only",
        started_at=on.clock.now(),
        last_seen_at=on.clock.now(),
        expires_at=on.clock.now() + on.hf.settings.lease,
        stopping=False,
    )
    holding = on.hf.do(lambda tx: workers.register(tx, info, silent=silent))
    return None if holding is None else holding.id


def one_of_two_processes_that_read_the_same_build_replaces_it(on: ScenarioSetup) -> None:
    request = on.build.request(fingerprint="f")
    seen = on.build.submit(fingerprint="f").id
    build_runs = [BuildRun(request, on.hf.ids.new(on.clock.now()), seen) for _ in range(2)]
    won = [on.hf.do(lambda tx, build_run=build_run: replace_builds(tx, [build_run])) for build_run in build_runs]  # type: ignore[misc]
    assert won == [build_runs[:1], []]
    assert on.hf.builds.get(request).run_id == build_runs[0].run_id


def a_rebuilt_build_is_not_invalidated_by_a_process_that_read_the_old_one(on: ScenarioSetup) -> None:
    seen = on.hf.builds.get(on.build.submit(fingerprint="f").id)
    on.hf.builds.rebuild(seen)
    identity = {"job": seen.job, "scope": seen.scope, "fingerprint": seen.fingerprint}
    assert on.do("invalidate_build", **identity, run_id=seen.run_id, reason="old", now=on.clock.now()) == 0


def forgetting_a_step_keeps_all_others(on: ScenarioSetup) -> None:
    """Steps with another name, and the step with this name in another run, are kept."""
    on.submit()
    on.submit()
    leases = [claim.lease for claim in on.manual.worker("a").claim(limit=2)]
    now = on.clock.now()
    done = [
        Step(name=name, result="1", claim=1, attempts=1, started_at=now, finished_at=now, number=number)
        for number, name in enumerate(("one", "two"))
    ]
    on.hf.do(lambda tx: steps.insert(tx, [(lease.run_id, step) for lease in leases for step in done]))
    assert on.hf.do(lambda tx: steps.forget(tx, leases[0], "one"))
    left = [[step.name for step in on.hf.steps(lease.run_id)] for lease in leases]
    assert left == [["two"], ["one", "two"]]


def a_cancelled_run_deletes_only_its_own_build_requests(on: ScenarioSetup) -> None:
    with on.hf.store.transaction() as tx:
        tx.owned = False
        options = on.job.using(depends_on=[on.build.request(fingerprint="f")]).options
        asking = [on.job.submission(on.hf.ids.new(tx.now), options, (), {}, now=tx.now) for _ in range(2)]
        submit_runs(tx, asking)
    on.hf.cancel(asking[0].run_id)
    assert on.hf.verify() == []
