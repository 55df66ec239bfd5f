"""Stale builds: rebuilt one at a time, while runs that have the old result keep it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.builds import App

from holdfast import Holdfast, RunNotFound
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("Q5")
def test_a_build_never_runs_twice_at_once_even_when_it_is_rebuilt(hf: Holdfast, manual: Manual, app: App) -> None:
    app.submit("early")
    builder = manual.worker("builder", queues=["builds"])
    [old] = builder.claim()
    hf.builds.invalidate(app.request(), reason="the index was wrong")
    late = app.submit("late")
    assert builder.claim() == [], "the outdated build is still running"
    assert f"held by run {old.lease.run_id} on builder" in late.why().reasons[0]

    builder.finish(old)
    manual.orchestrate()
    [new] = builder.claim()
    assert (new.lease.run_id,) == late.refresh().snapshot.depends_on
    assert new.again_of == old.lease.run_id
    builder.work(new)
    manual.run_all()
    assert late.result(timeout=1) == "late in /environments/c1/1"
    assert hf.verify() == []


@pytest.mark.contract("Q11", "S3")
def test_an_invalidated_build_is_not_reused_and_a_rebuild_starts_at_once(
    hf: Holdfast, manual: Manual, app: App
) -> None:
    app.submit()
    manual.run_all()
    ready = hf.builds.get(app.request())
    assert ready.state == "ready"

    stale = hf.builds.invalidate(ready, reason="a package was withdrawn")
    assert (stale.state, stale.reason) == ("stale", "a package was withdrawn")
    assert hf.builds.invalidate(ready.run_id, reason="again").reason == "a package was withdrawn"
    again = app.submit("again")
    assert again.snapshot.place == "waits"
    manual.run_all()
    assert again.result(timeout=1) == "again in /environments/c1/2"

    rebuilt = hf.builds.rebuild(app.request())
    assert rebuilt.snapshot.again_of == hf.builds.history(app.request())[1].id
    by_run = hf.again(ready.run_id)
    assert by_run.snapshot.again_of == rebuilt.id, "running an old run of a build again must rebuild the current build"
    manual.run_all()
    assert hf.builds.get(app.request()).result == '"/environments/c1/4"'
    assert [run.id for run in hf.builds.history(app.request())][-1] == ready.run_id
    assert hf.verify() == []


def test_a_build_whose_run_was_pruned_is_rebuilt(hf: Holdfast, manual: Manual, app: App, database: Database) -> None:
    app.environment.submit(configuration_id="c1", fingerprint="f1")
    manual.run_all()
    database.run("delete from holdfast_runs")
    assert [finding.problem for finding in hf.verify() if "build" in finding.problem] == ["build_without_run"]
    assert hf.builds.get(app.request()).state == "stale"
    late = app.submit()
    manual.run_all()
    assert late.result(timeout=1) == "doc in /environments/c1/2"


@pytest.mark.contract("S3", "Q4", "Q11")
def test_builds_requested_in_any_order_while_they_fail_and_go_stale_block_no_run(url: str) -> None:
    """Eight threads request several builds in different orders, and invalidate, cancel or rebuild some of them."""
    with Holdfast(url) as hf:
        app = App(hf)
        hf.start()
        build_requests = [app.request(f"c{number}") for number in range(6)]

        def submit(number: int) -> list[Any]:
            runs: list[Any] = []
            for turn in range(6):
                start = (number * 5 + turn) % 6
                after = (build_requests[start:] + build_requests[:start])[:: -1 if number % 2 else 1]
                runs += app.process.using(depends_on=after).submit_many([{"document_id": f"{number}-{turn}"}] * 3)
                if number % 4 == 0:
                    hf.builds.invalidate(build_requests[start])
                elif number % 4 == 1:
                    hf.cancel(hf.builds.get(build_requests[start]).run_id)
                elif number % 4 == 2:
                    hf.builds.rebuild(build_requests[start])
            return runs

        with ThreadPoolExecutor(8) as pool:
            runs = [run for some in pool.map(submit, range(8)) for run in some]
        manual = Manual(hf)
        manual.run_all()
        assert {run.refresh().state for run in runs} <= {"succeeded", "failed"}
        assert {run.snapshot.failure_type for run in runs} <= {None, "BUILD_FAILED"}
        for run in runs:
            if run.state == "succeeded":
                assert [hf.snapshot(build).state for build in run.snapshot.depends_on] == ["succeeded"] * 6
        assert len(hf.builds.list()) == 6
        assert hf.verify() == []


@pytest.mark.contract("Q1", "S3")
@pytest.mark.parametrize("outdated", ["stale", "rebuilt"])
def test_pruning_deletes_no_build_that_a_run_depends_on(
    hf: Holdfast, manual: Manual, clock: FakeClock, app: App, outdated: str
) -> None:
    old = app.environment.submit(configuration_id="c1", fingerprint="f1")
    manual.run_all()
    clock.advance(timedelta(days=40))
    run = app.submit()
    if outdated == "stale":
        hf.builds.invalidate(app.request())
    else:
        hf.builds.rebuild(app.request())
    assert hf.prune().runs == 0
    manual.run_all()
    assert run.result(timeout=1) == "doc in /environments/c1/1"
    clock.advance(timedelta(days=31))
    hf.prune()
    with pytest.raises(RunNotFound):
        old.refresh()
    assert hf.verify() == []


def test_pruning_keeps_ready_builds_and_deletes_stale_and_failed_ones(
    hf: Holdfast, manual: Manual, clock: FakeClock, app: App
) -> None:
    app.environment.submit(configuration_id="c1", fingerprint="ready")
    app.environment.submit(configuration_id="c1", fingerprint="stale")
    manual.run_all()
    app.fails = True
    app.environment.submit(configuration_id="c1", fingerprint="failed")
    manual.run_all()
    hf.builds.invalidate(app.request(fingerprint="stale"))
    clock.advance(365 * 86_400)
    assert hf.prune().runs == 2
    assert [(build.fingerprint, build.state) for build in hf.builds.list()] == [("ready", "ready")]
    app.fails = False
    run = app.submit(fingerprint="failed")
    manual.run_all()
    assert run.refresh().state == "succeeded"
    assert hf.verify() == []
