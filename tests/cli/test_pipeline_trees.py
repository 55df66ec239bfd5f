"""holdfast pipelines, on every store, by the database's URL."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Invoke, told

from holdfast import Holdfast, Pipeline, Run, StageInfo
from holdfast.testing import Manual


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


def test_a_pipeline_is_shown_as_a_tree_with_counts(holdfast: Invoke, url: str, ended: Run[str]) -> None:
    result = holdfast("pipelines", "show", url, ended.id)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"film  {ended.id}  succeeded  took 0.0 s",
        "└─ script        DONE  ████████████████████",
        "   ├─ audio      DONE  ███████████████▒▒▒▒▒  3/4, 1 error",
        "   │  └─ render  DONE  ████████████████████  after title, audio",
        "   └─ title      DONE  ████████████████████",
    ]


def test_what_has_not_begun_is_shown_too(holdfast: Invoke, url: str, pipeline: Pipeline) -> None:
    run = pipeline.submit(count=4)
    lines = holdfast("pipelines", "show", url, run.id).stdout.splitlines()
    assert lines[0].startswith(f"film  {run.id}  queued  for ")
    assert [line.split()[-2] for line in lines[1:3]] == ["READY", "NEW"]


def test_json_has_every_field_of_a_stage(holdfast: Invoke, url: str, ended: Run[str]) -> None:
    document = told(holdfast("pipelines", "show", url, ended.id, "--json"))
    assert (document["id"], document["state"], document["result"]) == (ended.id, "succeeded", "Film of 3")
    assert [stage["name"] for stage in document["stages"]] == ["script", "audio", "title", "render"]
    audio = document["stages"][1]
    assert audio.keys() == StageInfo.__dataclass_fields__.keys() | {"total", "done"}
    assert (audio["total"], audio["done"], audio["segments"]["ERROR"]) == (4, 3, 1)


def test_following_one_that_has_ended_tells_by_the_exit_code(
    holdfast: Invoke, url: str, pipeline: Pipeline, ended: Run[str]
) -> None:
    assert holdfast("pipelines", "show", url, ended.id, "--follow").exit_code == 0
    cancelled = pipeline.submit(count=1)
    cancelled.cancel()
    assert holdfast("pipelines", "show", url, cancelled.id, "--follow").exit_code == 1


def test_pipelines_are_listed_and_done_again(holdfast: Invoke, url: str, ended: Run[str], manual: Manual) -> None:
    result = holdfast("pipelines", "rerun", url, ended.id, "--from", "render")
    again = result.stdout.strip()
    manual.run_all()
    listed = told(holdfast("pipelines", "list", url, "--json"))["pipelines"]
    assert [(run["id"], run["state"], run["again_of"]) for run in listed] == [
        (again, "succeeded", ended.id),
        (ended.id, "succeeded", None),
    ]
    assert "done before" in holdfast("pipelines", "show", url, again).stdout
    assert holdfast("pipelines", "list", url, "--name", "film").stdout.count("film") == 2
    assert holdfast("pipelines", "list", url, "--name", "other").exit_code == 0


def test_what_is_no_pipeline_is_said_in_one_line(holdfast: Invoke, url: str, ended: Run[str], hf: Holdfast) -> None:
    stage = hf.pipelines.show(ended.id).stages[0].run_id
    for given in (stage, "nothing"):
        result = holdfast("pipelines", "show", url, given)
        assert (result.exit_code, result.stdout) == (3, "")
        assert result.stderr.startswith("holdfast: pipeline_not_found: ")
    result = holdfast("pipelines", "rerun", url, ended.id, "--from", "nowhere")
    assert result.exit_code == 2
    assert result.stderr.startswith("holdfast: invalid_arguments: ")


def test_a_run_of_a_pipeline_says_what_it_is_part_of(holdfast: Invoke, url: str, ended: Run[str], hf: Holdfast) -> None:
    shown = holdfast("runs", "show", url, ended.id).stdout
    assert 'arguments  {"count": 4}' in shown
    stage = hf.pipelines.show(ended.id).stages[1].run_id
    assert f"{ended.id} audio" in holdfast("runs", "show", url, stage).stdout
