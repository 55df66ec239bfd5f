"""Running again: the new run waits for its builds and its unfinished dependencies."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from tests.contract.helpers.builds import App
from tests.listing import runs_of

from holdfast import Holdfast, RunFilter
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("Q11", "Q16")
def test_again_rebuilds_a_failed_build_and_waits_for_it(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    first = app.submit()
    manual.run_all()
    assert (first.refresh().state, first.snapshot.failure_type) == ("failed", "BUILD_FAILED")

    again = first.again()
    [rebuild] = again.snapshot.depends_on
    assert (again.state, rebuild == first.snapshot.depends_on[0]) == ("queued", False)
    manual.run_all()
    assert (again.refresh().state, again.snapshot.failure_type) == ("failed", "BUILD_FAILED")
    assert len(app.made) == 2

    app.fails = False
    third = again.again()
    manual.run_all()
    assert third.result(timeout=1) == "doc in /environments/c1/3"
    assert [run.refresh().state for run in (first, again)] == ["failed", "failed"]


@pytest.mark.contract("Q4", "Q16")
def test_again_shares_a_build_that_is_ready_or_running(hf: Holdfast, manual: Manual, app: App) -> None:
    first = app.submit()
    early = first.again()
    manual.run_all()
    late = first.again()
    manual.run_all()
    assert [run.result(timeout=1) for run in (first, early, late)] == ["doc in /environments/c1/1"] * 3
    assert len(app.made) == 1


@pytest.mark.contract("Q11")
def test_again_does_not_wait_for_the_success_of_an_optional_build(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    first = app.other.using(depends_on={app.request(): False}).submit()
    manual.run_all()
    again = first.again()
    manual.run_all()
    assert (first.refresh().state, again.refresh().state, len(app.made)) == ("succeeded", "succeeded", 2)


@pytest.mark.contract("Q11", "S2")
def test_again_waits_for_the_build_of_a_run_cancelled_before_its_request_was_settled(
    hf: Holdfast, manual: Manual, app: App, database: Database
) -> None:
    hf.start()
    with contextlib.closing(database.connect()) as connection:
        database.begin(connection)
        run = app.process.using(connection=connection, depends_on=[app.request()]).submit("doc")
        connection.execute("commit")
    run.cancel()
    assert (run.refresh().state, run.snapshot.depends_on, app.made) == ("cancelled", (), [])

    again = run.again()
    assert manual.worker(queues=["default"]).claim() == []
    manual.run_all()
    assert again.result(timeout=1) == "doc in /environments/c1/1"


@pytest.mark.contract("Q11")
def test_a_bulk_operation_rebuilds_each_failed_build_once(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    first = [app.submit(f"doc-{number}") for number in range(5)]
    manual.run_all()
    app.fails = False
    hf.bulk.again(RunFilter(job="process"))
    manual.run_all()
    again = [run for run in runs_of(hf, job="process") if run.again_of is not None]
    assert {run.again_of for run in again} == {run.id for run in first}
    assert ({run.state for run in again}, len(app.made)) == ({"succeeded"}, 2)


@pytest.mark.contract("Q11")
def test_a_rerun_of_a_pipeline_waits_for_its_build_again(hf: Holdfast, manual: Manual, app: App) -> None:
    pipeline = hf.pipeline("film")

    @pipeline.stage()
    def cut() -> str:
        return "cut"

    @pipeline.stage(after=cut)
    def join(cut: str) -> str:
        return f"{cut} and joined"

    app.fails = True
    first = pipeline.using(depends_on=[app.request()]).submit()
    manual.run_all()
    app.fails = False
    whole = hf.again(first)
    manual.run_all()
    begun = hf.pipelines.rerun(whole, from_stage="cut")
    manual.run_all()
    assert (first.refresh().state, len(app.made)) == ("failed", 2)
    assert [run.result(timeout=1) for run in (whole, begun)] == ["cut and joined"] * 2


@pytest.mark.contract("S3")
def test_again_waits_for_unfinished_dependencies_only(hf: Holdfast, manual: Manual) -> None:
    part, whole = hf.job(name="part", queue="parts")(lambda: 5), hf.job(name="whole")(lambda: 6)
    needed = part.submit()
    first = whole.using(depends_on=[needed]).submit()
    first.cancel()
    again = first.again()
    manual.promote()
    assert manual.worker(queues=["default"]).claim() == []
    needed.cancel()
    manual.promote()
    assert again.refresh().snapshot.failure_type == "DEPENDENCY_FAILED"
    late = again.again()  # its dependency has ended without success, so the new run does not wait for it
    manual.run_all()
    assert late.refresh().state == "succeeded"
