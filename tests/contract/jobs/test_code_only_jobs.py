"""Jobs that only the code of the application may start: an operator can't submit them or run them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.listing import runs_of

from holdfast import Holdfast, InvalidPolicy, OnlyFromCode, RunFilter
from holdfast.operate import bulk as bulk_jobs
from holdfast.testing import Manual


@pytest.fixture
def process(hf: Holdfast) -> Any:
    @hf.job(name="process", only_from_code=True, start_at="/documents")
    def process(document_id: str) -> str:
        return document_id

    return process


@pytest.mark.contract("S4")
def test_the_application_can_submit_the_job_and_nobody_can_run_it_again(
    hf: Holdfast, manual: Manual, process: Any
) -> None:
    first, second = process.submit("doc-1"), hf.submit("process", document_id="doc-2")
    manual.run_all()
    assert [run.refresh().state for run in (first, second)] == ["succeeded", "succeeded"]

    before = len(runs_of(hf))
    for repeat in (lambda: hf.again(first, by="eve"), first.again, lambda: hf.bulk.again(RunFilter(job="process"))):
        with pytest.raises(OnlyFromCode, match="only the application itself can start runs of process") as refused:
            repeat()
        assert (refused.value.code, refused.value.start_at) == ("only_from_code", "/documents")
    assert len(runs_of(hf)) == before


@pytest.mark.contract("S4")
def test_a_process_without_the_code_refuses_the_job_too(url: str, manual: Manual, process: Any) -> None:
    run = process.submit("doc-1")
    manual.run_all()
    with Holdfast(url) as other, pytest.raises(OnlyFromCode, match="start one at /documents"):
        other.again(run.id)


def test_the_current_code_decides_for_older_runs(url: str, manual: Manual, process: Any) -> None:
    run = process.submit("doc-1")
    manual.run_all()
    with Holdfast(url) as later:
        later.job(name="process")(lambda document_id: None)
        assert later.again(run.id).snapshot.again_of == run.id


@pytest.mark.contract("S4")
def test_a_bulk_operation_skips_its_runs_and_runs_the_others_again(hf: Holdfast, manual: Manual, process: Any) -> None:
    hf.job(name="other")(lambda: None)
    runs = [process.submit("doc-1"), hf.submit("other"), process.submit("doc-2"), hf.submit("other")]
    manual.run_all()
    bulk = hf.bulk.again(RunFilter())
    manual.run_all()
    assert bulk.result(timeout=1) == {"matched": 4, "done": 2, "skipped": 2}
    repeated = {run.again_of for run in runs_of(hf) if run.again_of and run.job != bulk_jobs.AGAIN}
    assert repeated == {runs[1].id, runs[3].id}


@pytest.mark.contract("S4")
def test_a_code_only_pipeline_is_not_rerun_and_a_code_only_build_is_not_rebuilt(hf: Holdfast, manual: Manual) -> None:
    pipeline = hf.pipeline("film", only_from_code=True, start_at="/videos")

    @pipeline.stage()
    def cut(name: str) -> str:
        return name

    @hf.build(name="environment", only_from_code=True, start_at="/builds")
    def environment(fingerprint: str) -> str:
        return fingerprint

    film, made = pipeline.submit(name="one"), environment.submit(fingerprint="f1")
    manual.run_all()
    assert (film.result(timeout=1), made.result(timeout=1)) == ("one", "f1")
    before = len(runs_of(hf))
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: hf.again(film), "/videos"),
        (lambda: hf.pipelines.rerun(film, from_stage="cut"), "/videos"),
        (lambda: hf.again(made), "/builds"),
        (lambda: hf.builds.rebuild(made), "/builds"),
    ]
    for repeat, where in refused:
        with pytest.raises(OnlyFromCode, match=f"start one at {where}"):
            repeat()
    assert len(runs_of(hf)) == before


@pytest.mark.contract("Q11")
def test_a_failed_code_only_build_is_built_once_more_for_a_dependent_run(hf: Holdfast, manual: Manual) -> None:
    fails = [True]

    @hf.build(name="environment", only_from_code=True)
    def environment(fingerprint: str) -> str:
        if fails:
            raise OSError(fails.pop())
        return fingerprint

    use = hf.job(name="use")(lambda: None)
    first = use.using(depends_on=[environment.request(fingerprint="f1")]).submit()
    manual.run_all()
    again = first.again()
    manual.run_all()
    assert (first.refresh().state, again.refresh().state) == ("failed", "succeeded")


def test_the_option_is_for_jobs_and_not_for_a_submission_or_a_stage(hf: Holdfast, process: Any) -> None:
    with pytest.raises(InvalidPolicy, match="only_from_code is not an option of a submission"):
        process.using(only_from_code=False)
    with pytest.raises(InvalidPolicy, match="only_from_code is not an option of a stage"):
        hf.pipeline("film").stage(only_from_code=True)
