"""Running again: the new run waits for its builds, and for runs that go on, as if it were submitted anew."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest
from tests.contract.building import App
from tests.listing import runs_of

from holdfast import Holdfast, RunFilter
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.conftest import Database


@pytest.mark.contract("Q11", "Q16")
def test_a_run_whose_build_failed_has_it_built_once_more_and_waits_for_it(
    hf: Holdfast, manual: Manual, app: App
) -> None:
    app.fails = True
    first = app.ask()
    manual.run_all()
    assert (first.refresh().state, first.snapshot.failure_type) == ("failed", "BUILD_FAILED")

    again = first.again()
    [making] = again.snapshot.needed
    assert (again.state, making == first.snapshot.needed[0]) == ("queued", False)
    manual.run_all()
    assert (again.refresh().state, again.snapshot.failure_type) == ("failed", "BUILD_FAILED")
    assert len(app.made) == 2

    app.fails = False
    third = again.again()
    manual.run_all()
    assert third.result(timeout=1) == "doc in /environments/c1/3"
    assert [run.refresh().state for run in (first, again)] == ["failed", "failed"]


@pytest.mark.contract("Q4", "Q16")
def test_a_run_whose_build_is_ready_or_being_made_shares_it(hf: Holdfast, manual: Manual, app: App) -> None:
    first = app.ask()
    early = first.again()
    manual.run_all()
    late = first.again()
    manual.run_all()
    assert [run.result(timeout=1) for run in (first, early, late)] == ["doc in /environments/c1/1"] * 3
    assert len(app.made) == 1


@pytest.mark.contract("Q11")
def test_a_build_that_need_not_succeed_holds_up_no_run_again_either(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    first = app.other.using(after={app.of(): False}).submit()
    manual.run_all()
    again = first.again()
    manual.run_all()
    assert (first.refresh().state, again.refresh().state, len(app.made)) == ("succeeded", "succeeded", 2)


@pytest.mark.contract("Q11", "S2")
def test_a_run_that_was_cancelled_before_its_build_was_found_waits_for_it_when_it_is_done_again(
    hf: Holdfast, manual: Manual, app: App, database: Database
) -> None:
    hf.start()
    with contextlib.closing(database.connect()) as connection:
        database.begin(connection)
        run = app.process.using(connection=connection, after=[app.of()]).submit("doc")
        connection.execute("commit")
    run.cancel()
    assert (run.refresh().state, run.snapshot.needed, app.made) == ("cancelled", (), [])

    again = run.again()
    assert manual.worker(queues=["default"]).claim() == []
    manual.run_all()
    assert again.result(timeout=1) == "doc in /environments/c1/1"


@pytest.mark.contract("Q11")
def test_a_bulk_has_each_failed_build_built_once_for_all(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    first = [app.ask(f"doc-{number}") for number in range(5)]
    manual.run_all()
    app.fails = False
    hf.bulk.again(RunFilter(job="process"))
    manual.run_all()
    again = [run for run in runs_of(hf, job="process") if run.again_of is not None]
    assert {run.again_of for run in again} == {run.id for run in first}
    assert ({run.state for run in again}, len(app.made)) == ({"succeeded"}, 2)


@pytest.mark.contract("Q11")
def test_a_pipeline_that_waits_for_a_build_waits_for_it_again(hf: Holdfast, manual: Manual, app: App) -> None:
    pipeline = hf.pipeline("film")

    @pipeline.stage()
    def cut() -> str:
        return "cut"

    @pipeline.stage(after=cut)
    def join(cut: str) -> str:
        return f"{cut} and joined"

    app.fails = True
    first = pipeline.using(after=[app.of()]).submit()
    manual.run_all()
    app.fails = False
    whole = hf.again(first)
    manual.run_all()
    begun = hf.pipelines.rerun(whole, from_stage="cut")
    manual.run_all()
    assert (first.refresh().state, len(app.made)) == ("failed", 2)
    assert [run.result(timeout=1) for run in (whole, begun)] == ["cut and joined"] * 2


@pytest.mark.contract("S3")
def test_a_run_that_goes_on_is_waited_for_and_one_that_has_ended_is_not(hf: Holdfast, manual: Manual) -> None:
    part, whole = hf.job(name="part", queue="parts")(lambda: 5), hf.job(name="whole")(lambda: 6)
    needed = part.submit()
    first = whole.using(after=[needed]).submit()
    first.cancel()
    again = first.again()
    manual.promote()
    assert manual.worker(queues=["default"]).claim() == []
    needed.cancel()
    manual.promote()
    assert again.refresh().snapshot.failure_type == "NEED_FAILED"
    late = again.again()  # what it needed has ended for good: whoever asks for this wants it all the same
    manual.run_all()
    assert late.refresh().state == "succeeded"
