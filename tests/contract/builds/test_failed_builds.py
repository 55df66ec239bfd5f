"""Failed builds: waiting runs fail with the reason, and the next request builds once more."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.contract.helpers.builds import App
from tests.contract.helpers.waiting import hold_past_the_deadline
from tests.listing import runs_of

from holdfast import Holdfast
from holdfast.orchestrator import promote
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("Q11", "Q3")
@pytest.mark.parametrize("ending", ["failed", "cancelled", "timed_out"])
def test_a_failed_build_fails_its_waiting_runs_with_its_reason(
    hf: Holdfast, manual: Manual, clock: FakeClock, app: App, ending: str
) -> None:
    app.fails = True
    runs = [app.submit(f"doc-{number}") for number in range(3)]
    downstream = app.other.using(depends_on=[runs[0]]).submit()
    build = hf.builds.get(app.request())
    match ending:
        case "failed":
            reason = "build failed: OSError: the index can't be reached"
        case "cancelled":
            hf.cancel(build.run_id, reason="no longer wanted")
            reason = "build failed: it was cancelled: no longer wanted"
        case "timed_out":
            worker = manual.worker(queues=["builds"])
            hold_past_the_deadline(worker, worker.claim()[0], clock)
            reason = "build failed: it timed out: Timed out after 10 min"
    manual.run_all()

    for run in runs:
        assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "BUILD_FAILED")
        assert run.snapshot.error.startswith(reason)
        assert run.snapshot.error.endswith(f"(environment, run {build.run_id})")
    assert downstream.refresh().snapshot.failure_type == "DEPENDENCY_FAILED"
    assert hf.builds.get(app.request()).state == ("cancelled" if ending == "cancelled" else "failed")
    assert hf.verify() == []


@pytest.mark.contract("Q11")
def test_the_next_request_for_a_failed_build_builds_it_once_more(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    unlucky = app.submit("unlucky")
    manual.run_all()
    first = hf.builds.get(app.request()).run_id
    app.fails = False

    lucky = [app.submit("lucky"), app.submit("too")]
    second = hf.builds.get(app.request())
    assert (second.state, second.waiting) == ("queued", 2)
    assert hf.snapshot(second.run_id).again_of == first
    manual.run_all()

    assert [run.result(timeout=1) for run in lucky] == ["lucky in /environments/c1/2", "too in /environments/c1/2"]
    assert unlucky.refresh().state == "failed", "an ended run must not change"
    assert [run.id for run in hf.builds.history(app.request())] == [second.run_id, first]
    assert hf.verify() == []


@pytest.mark.contract("Q14")
def test_a_build_whose_worker_is_lost_is_tried_once_more_and_then_fails(
    hf: Holdfast, manual: Manual, clock: FakeClock, app: App
) -> None:
    waiting = app.submit()
    for _ in range(2):
        assert manual.worker(queues=["builds"]).claim() != []
        clock.advance(2 * hf.settings.lease)
        manual.orchestrate()
    build = hf.builds.get(app.request())
    assert (build.state, build.failure_type) == ("failed", "TAKEOVER_LIMIT")
    assert "build failed: 2 workers were lost while executing this run" in waiting.refresh().snapshot.error


@pytest.mark.contract("Q5", "Q11")
def test_many_requests_for_a_failed_build_replace_it_once(url: str, database: Database) -> None:
    """Each thread has its own Holdfast, because one Holdfast writes simultaneous submissions in one transaction."""
    with contextlib.ExitStack() as stack:
        apps = [App(stack.enter_context(Holdfast(url))) for _ in range(8)]
        app, hf = apps[0], apps[0].hf
        manual = Manual(hf)
        for one in apps:
            one.hf.start()
        app.fails = True
        app.submit()
        manual.run_all()
        app.fails = False
        barrier = threading.Barrier(8)

        def submit(number: int) -> str:
            barrier.wait()
            run_id: str = apps[number].submit(f"doc-{number}").id
            return run_id

        with ThreadPoolExecutor(8) as pool:
            runs = [hf.get(run_id) for run_id in pool.map(submit, range(8))]
        manual.run_all()
        assert len({run.refresh().snapshot.depends_on for run in runs}) == 1
        assert {run.state for run in runs} == {"succeeded"}
        assert len(app.made) == 2
        assert (database.count("builds"), len(runs_of(hf, job="environment"))) == (1, 2)
        assert hf.verify() == []


@pytest.mark.contract("Q11", "S3")
def test_thousands_of_runs_waiting_for_one_build_fail_a_thousand_at_a_time(
    hf: Holdfast, manual: Manual, app: App, database: Database
) -> None:
    request = app.request()
    app.process.using(depends_on=[request]).submit_many([{"document_id": str(number)} for number in range(3_500)])
    hf.cancel(hf.builds.get(request).run_id)
    moved = [hf.do(lambda tx: promote.dependents(tx, [hf.builds.get(request).run_id], limit=1000)) for _ in range(5)]
    assert moved == [1000, 1000, 1000, 500, 0]
    assert database.all("select failure_type, count(*) from holdfast_outcomes group by failure_type order by 1") == [
        ("BUILD_FAILED", 3_500),
        ("CANCELLED", 1),
    ]
    assert (database.count("dependencies"), database.count("waits")) == (0, 0)
