"""The work of one run: what its engine leaves and says is taken for what it is, whoever wrote it."""

from __future__ import annotations

import math
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apps.ade import engine_events, runs, submit_samples
from apps.ade import execution as working
from apps.ade.execution import Execution
from apps.ade.process import Limits


@pytest.fixture
def work(tmp_path: Path) -> Execution:
    limits = Limits(seconds=1, memory=1, file_size=1)
    made = Execution(
        place=tmp_path / "place",
        environment=tmp_path,
        name="a.csv",
        limits=limits,
        over_at=time.monotonic() + 1,
    )
    made.inside.mkdir(parents=True)
    return made


@pytest.mark.contract("Q13")
def test_a_preview_has_half_of_the_time_that_the_run_has_left(
    work: Execution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(working, "PREVIEW", slow)
    limits = Limits(seconds=600, memory=1_000_000_000, file_size=1_000_000)  # what an engine may use, from the start
    began = time.monotonic()
    late = replace(work, limits=limits, over_at=began + 4)
    late.kept.mkdir()
    assert late.preview() is None
    assert 2 <= time.monotonic() - began < 60


def test_only_plain_files_come_out(work: Execution) -> None:
    assert work.outputs() == []
    work.output.mkdir()
    (work.output / "output.xlsx").write_bytes(b"a workbook")
    (work.output / "report.json").write_bytes(b"")
    (work.output / "other.txt").write_bytes(b"not asked for")
    made = work.outputs()
    assert made == [work.place / "kept" / "output.xlsx"]
    assert not any(file.is_relative_to(work.inside) for file in made)  # where the engine could still change it


def test_no_link_leads_to_a_file_that_is_not_the_engine_s(work: Execution, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "report.json").write_text("of another run")
    work.output.symlink_to(other)
    assert work.outputs() == []


def test_no_file_is_a_link(work: Execution, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the service")
    work.output.mkdir()
    (work.output / "report.json").symlink_to(tmp_path / "secret")
    assert work.outputs() == []


def test_what_is_counted_is_numbers() -> None:
    said = {"event": "run.finished", "tables": 1, "rows_read": "many", "rows_written": -1, "rows_rejected": True}
    nothing = dict.fromkeys(("rows_read", "rows_written", "rows_rejected", "seconds"))
    for seconds in (math.nan, math.inf, -1, "x", None, True, 10**400):
        assert engine_events.counts_of(said | {"seconds": seconds}) == nothing | {"tables": 1}
    assert engine_events.counts_of({"event": "x", "rows_read": 10**30, "seconds": 2}) == nothing | {
        "tables": None,
        "seconds": 2.0,
    }


@pytest.mark.parametrize(
    ("event", "words", "warns"),
    [
        (
            {"event": "field.missing", "field": "net", "table": 1, "required": False},
            "no column is net (table 1)",
            False,
        ),
        ({"event": "field.missing", "field": "net", "table": 1, "required": True}, "which is required", True),
        (
            {"event": "row.rejected", "row": 3, "sheet": "S", "field": "net", "message": "net: too much", "count": 1},
            "row 3 of S is rejected: net: too much (rejected so far: 1)",
            True,
        ),
        ({"event": "row.rejected", "row": 3, "sheet": "S", "message": "no", "count": 1}, "is rejected: no", True),
        ({"event": "row.rejected", "row": None}, "row.rejected: ", True),
        ({"event": "log", "text": "a\0b"}, "printed: a\\0b", False),
    ],
)
def test_events_are_told_in_words(event: engine_events.Event, words: str, warns: bool) -> None:
    assert words in engine_events.in_words(event)
    assert engine_events.is_warning(event) == warns


@pytest.mark.contract("Q2", "Q19")
@pytest.mark.parametrize(
    ("status", "needed", "words"),
    [
        ("queued", (), "It waits for its build, which is queued."),
        ("building", ("m",), "It waits for its build, which is building."),
        ("ready", ("m",), "Its build is ready; it waits for a free place."),
        ("cancelled", ("m",), "Its build was cancelled: the run is about to fail."),
        ("failed", ("m",), "Its build failed: the run is about to fail."),
        ("cancelled", (), "Its build was cancelled before: it is made once more."),
        ("failed", ("another",), "Its build failed before: it is made once more."),
    ],
)
def test_a_queued_run_says_what_it_waits_for(status: str, needed: tuple[str, ...], words: str) -> None:
    build: Any = SimpleNamespace(status=status, making="m")
    nothing: Any = None
    run: Any = SimpleNamespace(needed=needed)
    fields = dict.fromkeys(("row", "document", "configuration", "message", "created_at"), nothing)
    view = runs.RunView(**fields, started_at=None, finished_at=None, status="queued", build=build, snapshot=run)
    assert view.waits == words
    assert replace(view, status="running").waits is None


def test_a_share_that_is_none_is_not_told() -> None:
    assert engine_events.share_of({"event": "progress", "share": 0.5, "rows_read": "many"}) == (0.5, "")
    assert engine_events.share_of({"event": "progress", "share": 7, "rows_read": 2000}) == (1.0, "2,000 rows read")
    assert engine_events.share_of({"event": "progress", "share": True}) is None


def test_each_sample_is_submitted_once_and_then_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(submit_samples, "ask", said.append)

    def pause() -> bool:
        said.append("pause")
        return said.count("pause") == 4

    first, second, third, *_ = sorted(submit_samples.BY)
    submit_samples.keep_asking(list(submit_samples.BY), pause=pause)
    assert said == [*submit_samples.BY, "pause", first, "pause", second, "pause", third, "pause"]
