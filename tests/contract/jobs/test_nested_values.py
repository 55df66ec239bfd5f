"""Nested values: up to MAX_DEPTH levels are stored and read back; deeper ones are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.nested_values import nested
from tests.listing import runs_of

from holdfast import Context, Holdfast, NotSerialisable
from holdfast.support import json_text
from holdfast.support.json_text import MAX_DEPTH
from holdfast.testing import Manual
from holdfast.values.filters import RunFilter

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def echo(hf: Holdfast) -> Any:
    @hf.job(name="echo")
    def echo(value: Any = None, levels: int = 0) -> Any:
        return nested(levels) if levels else value

    return echo


@pytest.mark.contract("S4")
def test_arguments_of_the_maximum_depth_come_back_and_deeper_ones_are_refused(
    hf: Holdfast, manual: Manual, database: Database, echo: Any
) -> None:
    value = nested(MAX_DEPTH - 1)  # the object with all arguments is one level too
    run = echo.submit(value, levels=0)
    manual.run_all()
    assert run.result() == value
    assert runs_of(hf)[0].args == {"value": value, "levels": 0}
    assert [found.id for found in hf.search(RunFilter(args={"levels": 0})).items] == [run.id]
    before = database.counts()
    for levels in (MAX_DEPTH, 150, 201, 254, 300, 5000):
        with pytest.raises(NotSerialisable) as refused:
            echo.submit(nested(levels))
        assert refused.value.code == "not_serialisable"
        assert f"nested more than {MAX_DEPTH} levels deep" in str(refused.value)
    assert database.counts() == before


@pytest.mark.contract("S4")
@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 201, 254, 300])
def test_a_result_that_is_too_deep_fails_its_run(hf: Holdfast, manual: Manual, echo: Any, levels: int) -> None:
    sound, run = echo.submit(levels=MAX_DEPTH), echo.submit(levels=levels)
    manual.run_all()
    assert sound.result() == nested(MAX_DEPTH)
    assert run.refresh().snapshot.failure_type == "RESULT_NOT_STORABLE"
    assert f"nested more than {MAX_DEPTH} levels deep" in str(run.snapshot.error)
    assert {found.unreadable for found in runs_of(hf)} == {None}


def test_a_step_result_that_is_too_deep_is_refused_and_not_stored(hf: Holdfast, manual: Manual) -> None:
    codes: list[str] = []

    @hf.job(name="work")
    def work(ctx: Context) -> Any:
        try:
            ctx.step("deep", lambda: nested(MAX_DEPTH + 1))
        except NotSerialisable as error:
            codes.append(error.code)
        return ctx.step("sound", lambda: nested(MAX_DEPTH))

    run = work.submit()
    manual.run_all()
    assert (run.result(), codes) == (nested(MAX_DEPTH), ["not_serialisable"])
    assert [step.name for step in hf.steps(run.id)] == ["sound"]


@pytest.mark.parametrize(
    "value", [nested(MAX_DEPTH), object(), {"nul": "\x00"}, "half \ud800"], ids=["deep", "object", "nul", "half"]
)
def test_progress_that_cannot_be_stored_is_refused(hf: Holdfast, manual: Manual, value: Any) -> None:
    @hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.progress(value)

    run = work.submit()
    manual.run_all()
    assert run.refresh().state == "failed"
    assert "NotSerialisable" in str(run.snapshot.error)
    assert "PROGRESS" not in [event.kind for event in run.timeline()]


def test_a_progress_note_is_stored_with_control_characters_escaped(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.progress(1, 2, "nul \x00 half \ud800")

    run = work.submit()
    manual.run_all()
    [data] = [event.data for event in run.timeline() if event.kind == "PROGRESS"]
    assert data == {"done": 1, "total": 2, "note": "nul \\x00 half \\ud800"}


@pytest.mark.parametrize(
    "name", ["", "nul \x00", "half \ud800", "x" * 401, 5], ids=["empty", "nul", "half", "long", "number"]
)
def test_a_step_needs_a_name_that_every_database_can_store(hf: Holdfast, manual: Manual, name: Any) -> None:
    @hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.step(name, int)

    run = work.submit()
    manual.run_all()
    assert run.refresh().state == "failed"
    assert "InvalidPolicy: a step's name must be text of 1 to 400 characters" in str(run.snapshot.error)


@pytest.mark.contract("L9")
def test_segments_and_arguments_of_pipelines_have_the_same_maximum_depth(hf: Holdfast, manual: Manual) -> None:
    """A list of segments is a level, and so is the object that a segment's value is stored in."""
    film = hf.pipeline("film")

    @film.stage()
    def script(value: Any) -> Any:
        return [value] if isinstance(value, dict) else nested(MAX_DEPTH - 1)

    @film.stage(after=script, each="part")
    def audio(part: Any) -> Any:
        return part

    run = film.submit(value=nested(MAX_DEPTH - 1))
    manual.run_all()
    assert run.refresh().state == "succeeded", run.snapshot.error
    assert hf.pipelines.show(run.id).stages[1].done == 1
    with pytest.raises(NotSerialisable):
        film.submit(value=nested(MAX_DEPTH))


def test_the_depth_limit_leaves_room_for_what_databases_and_readers_add() -> None:
    """SQL Server reads 128 levels, pydantic 200 (jiter's own limit)."""
    assert MAX_DEPTH + 5 <= 128
    for levels in (MAX_DEPTH, 128, 195):
        assert json_text.is_json("[" * levels + "]" * levels)


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ('"\\u0000"', False),
        ('"\\\\u0000"', True),
        ('"\\\\\\u0000"', False),
        ('"\\n\\u0000"', False),
        ('"\ud800"', False),
        ('["[[[", "\\"[", "' + "[" * 500 + '"]', True),
        ('"' + "[" * 500 + '"', True),
        ('["\\\\","' + "[" * 500 + '","\\\\\\""]', True),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, True),
        ("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), False),
        ("[" + ",".join(["[]"] * 500) + "]", True),
        ('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), False),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_json_text_is_checked_before_it_is_stored(text: str, sound: bool) -> None:
    if sound:
        assert json_text.check(text, what="it") == text
    else:
        with pytest.raises(NotSerialisable, match="it can't be stored"):
            json_text.check(text, what="it")
