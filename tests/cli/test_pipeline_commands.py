"""`holdfast pipelines`, given the URL of each kind of database."""

from __future__ import annotations

from datetime import datetime, timedelta
from io import StringIO

import pytest
from rich.console import Console
from tests.cli.conftest import Invoke, json_output
from tests.listing import runs_of

from holdfast import Holdfast, Pipeline, Retry, Run, StageInfo
from holdfast.cli import pipeline_tree
from holdfast.runs.outcomes import Release
from holdfast.testing import FakeClock, Manual


@pytest.fixture
def pipeline(hf: Holdfast) -> Pipeline:
    pipeline = hf.pipeline("film")

    @pipeline.stage()
    def script(count: int) -> list[int]:
        return list(range(count))

    @pipeline.stage(after=script, each="number", on_error="continue")
    def audio(number: int) -> int:
        return 10 // (number - 2)

    @pipeline.stage(after=script)
    def title() -> str:
        return "Film"

    @pipeline.stage(after=[title, audio])
    def render(segments: list[int], title: str) -> str:
        return f"{title} of {len(segments)}"

    return pipeline


@pytest.fixture
def ended(pipeline: Pipeline, manual: Manual) -> Run[str]:
    run: Run[str] = pipeline.submit(count=4)
    manual.run_all()
    return run


def segment_of(hf: Holdfast, run: Run[str], name: str) -> str:
    return next(part.id for part in runs_of(hf, parent=run.id) if part.segment == name)


def test_a_pipeline_is_shown_as_a_tree_with_counts(holdfast: Invoke, url: str, hf: Holdfast, ended: Run[str]) -> None:
    result = holdfast("pipelines", "show", url, ended.id)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"film  {ended.id}  succeeded  took 0 s",
        "└─ script        DONE  ████████████████████",
        "   ├─ audio      DONE  ███████████████▒▒▒▒▒  3/4, 1 failed",
        "   │  └─ render  DONE  ████████████████████  after title, audio",
        "   └─ title      DONE  ████████████████████",
        f"audio[2]  {segment_of(hf, ended, '2')}  failed  ZeroDivisionError: integer division or modulo by zero",
    ]


def test_stages_that_have_not_started_are_shown_too(
    holdfast: Invoke, url: str, pipeline: Pipeline, manual: Manual
) -> None:
    run = pipeline.submit(count=4)
    assert holdfast("pipelines", "show", url, run.id).stdout.splitlines()[1].split()[-2] == "NEW"
    manual.promote()
    lines = holdfast("pipelines", "show", url, run.id).stdout.splitlines()
    assert lines[0] == f"film  {run.id}  queued"
    assert [line.split()[-2] for line in lines[1:3]] == ["READY", "NEW"]


def test_json_has_every_field_of_a_stage(holdfast: Invoke, url: str, ended: Run[str]) -> None:
    document = json_output(holdfast("pipelines", "show", url, ended.id, "--json"))
    assert (document["id"], document["state"], document["result"]) == (ended.id, "succeeded", "Film of 3")
    assert [stage["name"] for stage in document["stages"]] == ["script", "audio", "title", "render"]
    audio = document["stages"][1]
    assert audio.keys() == StageInfo.__dataclass_fields__.keys() | {"total", "done"}
    assert (audio["total"], audio["done"], audio["segments"]["ERROR"]) == (4, 3, 1)


def test_following_an_ended_pipeline_returns_its_outcome_as_exit_code(
    holdfast: Invoke, url: str, pipeline: Pipeline, ended: Run[str]
) -> None:
    assert holdfast("pipelines", "show", url, ended.id, "--follow").exit_code == 0
    cancelled = pipeline.submit(count=1)
    cancelled.cancel()
    assert holdfast("pipelines", "show", url, cancelled.id, "--follow").exit_code == 1


def test_pipelines_are_listed_and_rerun(holdfast: Invoke, url: str, ended: Run[str], manual: Manual) -> None:
    result = holdfast("pipelines", "rerun", url, ended.id, "--from", "render")
    again = result.stdout.strip()
    manual.run_all()
    listed = json_output(holdfast("pipelines", "list", url, "--json"))["items"]
    assert [(run["id"], run["state"], run["again_of"]) for run in listed] == [
        (again, "succeeded", ended.id),
        (ended.id, "succeeded", None),
    ]
    assert "reused" in holdfast("pipelines", "show", url, again).stdout
    assert holdfast("pipelines", "list", url, "--name", "film").stdout.count("film") == 2
    assert holdfast("pipelines", "list", url, "--name", "other").exit_code == 0


def test_a_run_of_a_pipeline_shows_its_pipeline_and_stage(
    holdfast: Invoke, url: str, ended: Run[str], hf: Holdfast
) -> None:
    shown = holdfast("runs", "show", url, ended.id).stdout
    assert 'arguments  {"count": 4}' in shown
    assert "   ├─ audio      DONE  ███████████████▒▒▒▒▒  3/4, 1 failed\n" in shown
    assert f"--parent {ended.id}\n" in shown
    stage = hf.pipelines.show(ended.id).stages[1].run_id
    assert f"{ended.id}, stage audio\n" in holdfast("runs", "show", url, stage).stdout
    segment = holdfast("runs", "show", url, segment_of(hf, ended, "3")).stdout
    assert f"{ended.id}, segment 3 of stage audio\n" in segment
    assert '{"number": 3}\n' in segment


def test_a_run_that_never_started_has_no_attempt_in_its_timeline(
    holdfast: Invoke, url: str, pipeline: Pipeline, manual: Manual
) -> None:
    run = pipeline.submit(count=1)
    run.cancel()
    manual.run_all()
    assert "claim" not in holdfast("runs", "show", url, run.id).stdout


def test_a_run_shows_its_dependencies(holdfast: Invoke, url: str, hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="plain")
    def plain() -> None: ...

    first = plain.submit()
    second = plain.using(depends_on=[first]).submit()
    manual.run_all()
    assert f" {first.id}\n" in holdfast("runs", "show", url, second.id).stdout
    assert "needed" not in holdfast("runs", "show", url, first.id).stdout


def test_a_failed_stage_is_shown_with_its_run(holdfast: Invoke, url: str, pipeline: Pipeline, ended: Run[str]) -> None:
    [failure] = json_output(holdfast("pipelines", "show", url, ended.id, "--json"))["failures"]
    assert (failure["stage"], failure["segment"], failure["state"]) == ("audio", "2", "failed")
    assert failure["error"] == "ZeroDivisionError: integer division or modulo by zero"
    line = holdfast("pipelines", "show", url, ended.id).stdout.splitlines()[-1]
    assert line.split() == ["audio[2]", failure["run_id"], "failed", *failure["error"].split()]
    failed = json_output(holdfast("runs", "list", url, "--parent", ended.id, "--state", "failed", "--json"))["items"]
    assert [run["id"] for run in failed] == [failure["run_id"]]


def test_failed_cancelled_and_skipped_stages_look_different(
    holdfast: Invoke, url: str, hf: Holdfast, manual: Manual
) -> None:
    chain = hf.pipeline("chain")

    @chain.stage()
    def numbers() -> list[int]:
        return [0, 1]

    @chain.stage(after="numbers", each="number", on_error="continue")
    def first(number: int) -> float:
        return 1 / number

    @chain.stage(after="first", each="number", on_error="continue")
    def second(number: int, first: float) -> float:
        return first

    @chain.stage(after=["numbers", second])
    def stops() -> None:
        raise OSError("full")

    @chain.stage(after=["stops"])
    def last() -> None: ...

    run = chain.submit()
    manual.run_all()
    shown = hf.pipelines.show(run.id)
    assert {stage.name: dict(stage.errors) for stage in shown.stages} == {
        "numbers": {},
        "first": {"failed": 1},
        "second": {"skipped": 1},
        "stops": {"failed": 1},
        "last": {"skipped": 1},
    }
    tree = holdfast("pipelines", "show", url, run.id).stdout
    assert "1/2, 1 failed" in tree
    assert "1/2, 1 skipped" in tree
    assert "skipped, because stage stops failed: OSError: full" in tree
    cancelled, worker = chain.submit(), manual.worker()
    manual.promote()
    [claim] = worker.claim()
    cancelled.cancel(reason="too long")
    manual.orchestrate()
    worker.finish(claim, Release("it was asked to stop"))
    begun, *others = hf.pipelines.show(cancelled.id).stages
    assert (begun.state, begun.errors) == ("ERROR", {"cancelled": 1})
    assert {(stage.state, stage.errors["skipped"]) for stage in others} == {("NEW", 1)}
    _, first_line, second_line, *_ = holdfast("pipelines", "show", url, cancelled.id).stdout.splitlines()
    assert first_line.endswith("cancelled")
    assert second_line.endswith("was cancelled: too long")


def test_a_stage_that_will_be_retried_does_not_look_failed(
    holdfast: Invoke, url: str, hf: Holdfast, manual: Manual
) -> None:
    talk = hf.pipeline("talk")

    @talk.stage()
    def words() -> list[str]:
        return ["one", "two"]

    @talk.stage(after=words, each="word", max_attempts=2, retry=Retry(delay=60))
    def audio(word: str) -> str:
        if word == "two":
            raise OSError("microphone disconnected")
        return word

    run = talk.submit()
    manual.run_all()
    at = hf.pipelines.show(run.id).stages[1].retry_at
    assert at is not None
    again = f"to be tried again at {at:%H:%M:%S} UTC"
    *_, stage, segment = holdfast("pipelines", "show", url, run.id).stdout.splitlines()
    assert stage.endswith(f"1/2, 1 {again}")
    assert segment.endswith(f"{again}  OSError: microphone disconnected")
    assert f"1 of 2 segments done, 1 {again}: OSError: microphone disconnected" in hf.why(run.id).reasons[0]
    listed = holdfast("runs", "list", url, "--job", "talk.audio").stdout
    assert f"to be tried again at {at:%H:%M:%S} UTC: OSError: microphone disconnected\n" in listed


def test_a_running_pipeline_shows_for_how_long_it_has_run(
    holdfast: Invoke, url: str, pipeline: Pipeline, manual: Manual, clock: FakeClock
) -> None:
    run = pipeline.submit(count=4)
    assert holdfast("pipelines", "list", url).stdout.splitlines()[1].split()[1] == "queued"
    manual.promote()
    worker = manual.worker()
    [claim] = worker.claim()
    clock.advance(timedelta(seconds=42))
    for command in ("pipelines", "runs"):
        row = holdfast(command, "list", url).stdout.splitlines()[1]
        assert row.split()[1:3] == ["under", "way"]
        assert row.endswith("0 of 4 stages done")
    [listed] = json_output(holdfast("pipelines", "list", url, "--json"))["items"]
    assert (listed["state"], listed["progress"]["stages"], listed["progress"]["done"]) == ("queued", 4, 0)
    assert datetime.fromisoformat(listed["progress"]["begun_at"]) == claim.lease.started_at
    assert run.id in holdfast("pipelines", "list", url, "--state", "queued").stdout


def test_a_list_of_runs_hides_the_runs_of_pipelines(holdfast: Invoke, url: str, ended: Run[str], hf: Holdfast) -> None:
    def jobs(*arguments: str) -> list[str]:
        return [line.split()[2] for line in holdfast("runs", "list", url, *arguments).stdout.splitlines()[1:]]

    assert jobs() == ["film"]
    parts = ["film.audio[0]", "film.audio[1]", "film.audio[2]", "film.audio[3]"]
    parts += ["film.audio[]", "film.render", "film.script", "film.title"]
    assert sorted(jobs("--parent", ended.id)) == parts
    assert sorted(jobs("--all")) == ["film", *parts]
    assert sorted(jobs("--job", "film.audio")) == parts[:4]
    assert len(runs_of(hf, parts=False)) == 1
    assert len(runs_of(hf, parent=ended.id)) == 8
    result = holdfast("runs", "list", url, "--parent", "nothing")
    assert (result.exit_code, result.stderr) == (3, "holdfast: run_not_found: there is no run nothing\n")


def test_the_duration_of_a_pipeline_is_that_of_its_stages(
    holdfast: Invoke, url: str, hf: Holdfast, pipeline: Pipeline, manual: Manual, clock: FakeClock
) -> None:
    run = pipeline.submit(count=4)
    clock.advance(timedelta(hours=1))
    manual.promote()
    worker = manual.worker()
    [claim] = worker.claim()
    clock.advance(timedelta(seconds=5))
    worker.work(claim)
    clock.advance(timedelta(seconds=37))
    manual.run_all()
    assert run.refresh().state == "succeeded"
    for command in ("pipelines", "runs"):
        assert "  42 s  " in holdfast(command, "list", url).stdout
    assert holdfast("pipelines", "show", url, run.id).stdout.splitlines()[0].endswith("took 42 s")


def test_a_narrow_terminal_cuts_no_id(hf: Holdfast, ended: Run[str]) -> None:
    narrow = Console(file=StringIO(), width=60, force_terminal=True, color_system=None)
    narrow.print(pipeline_tree.picture(hf.pipelines.show(ended.id), now=hf.clock.now()))
    assert isinstance(narrow.file, StringIO)
    shown = narrow.file.getvalue()
    assert segment_of(hf, ended, "2") in shown
    assert "…" not in shown
