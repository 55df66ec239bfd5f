"""The execution of one run: its outputs and events are checked, because a user's rules may have written them."""

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
from apps.ade import execution as execution_module
from apps.ade.execution import Execution
from apps.ade.process import Limits


@pytest.fixture
def execution(tmp_path: Path) -> Execution:
    limits = Limits(seconds=1, memory=1, file_size=1)
    created = Execution(
        folder=tmp_path / "work",
        environment=tmp_path,
        name="a.csv",
        limits=limits,
        deadline=time.monotonic() + 1,
    )
    created.inside.mkdir(parents=True)
    return created


@pytest.mark.contract("Q13")
def test_a_preview_may_take_half_of_the_remaining_time(
    execution: Execution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr(execution_module, "PREVIEW", slow)
    limits = Limits(seconds=600, memory=1_000_000_000, file_size=1_000_000)  # the limits of an engine
    began = time.monotonic()
    late = replace(execution, limits=limits, deadline=began + 4)
    late.kept.mkdir()
    assert late.preview() is None
    assert 2 <= time.monotonic() - began < 60


def test_only_the_expected_output_files_are_kept(execution: Execution) -> None:
    assert execution.outputs() == []
    execution.output.mkdir()
    (execution.output / "output.xlsx").write_bytes(b"a workbook")
    (execution.output / "report.json").write_bytes(b"")
    (execution.output / "other.txt").write_bytes(b"unexpected")
    outputs = execution.outputs()
    assert outputs == [execution.folder / "kept" / "output.xlsx"]
    assert not any(file.is_relative_to(execution.inside) for file in outputs)  # where the engine could still change it


def test_an_output_folder_that_is_a_link_is_ignored(execution: Execution, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "report.json").write_text("of another run")
    execution.output.symlink_to(other)
    assert execution.outputs() == []


def test_an_output_file_that_is_a_link_is_ignored(execution: Execution, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the service")
    execution.output.mkdir()
    (execution.output / "report.json").symlink_to(tmp_path / "secret")
    assert execution.outputs() == []


def test_counts_that_are_not_numbers_become_none() -> None:
    event = {"event": "run.finished", "tables": 1, "rows_read": "many", "rows_written": -1, "rows_rejected": True}
    nothing = dict.fromkeys(("rows_read", "rows_written", "rows_rejected", "seconds"))
    for seconds in (math.nan, math.inf, -1, "x", None, True, 10**400):
        assert engine_events.counts_of(event | {"seconds": seconds}) == nothing | {"tables": 1}
    assert engine_events.counts_of({"event": "x", "rows_read": 10**30, "seconds": 2}) == nothing | {
        "tables": None,
        "seconds": 2.0,
    }


@pytest.mark.parametrize(
    ("event", "text", "warns"),
    [
        (
            {"event": "field.missing", "field": "net", "table": 1, "required": False},
            "table 1 has no column for net",
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
def test_events_are_described_for_the_log(event: engine_events.Event, text: str, warns: bool) -> None:
    assert text in engine_events.describe(event)
    assert engine_events.is_warning(event) == warns


@pytest.mark.contract("Q2", "Q19")
@pytest.mark.parametrize(
    ("status", "dependencies", "text"),
    [
        ("queued", (), "This run waits for its build, which is queued."),
        ("building", ("m",), "This run waits for its build, which is building."),
        ("ready", ("m",), "The build is ready; this run waits for a free worker."),
        ("cancelled", ("m",), "The build was cancelled; this run is about to fail."),
        ("failed", ("m",), "The build failed; this run is about to fail."),
        ("cancelled", (), "The last build was cancelled; it will be built again."),
        ("failed", ("another",), "The last build failed; it will be built again."),
    ],
)
def test_a_queued_run_says_what_it_is_waiting_for(status: str, dependencies: tuple[str, ...], text: str) -> None:
    build: Any = SimpleNamespace(status=status, run_id="m")
    nothing: Any = None
    run: Any = SimpleNamespace(depends_on=dependencies)
    fields = dict.fromkeys(("row", "document", "configuration", "message", "created_at"), nothing)
    view = runs.RunView(**fields, started_at=None, finished_at=None, status="queued", build=build, snapshot=run)
    assert view.waiting_for == text
    assert replace(view, status="running").waiting_for is None


def test_only_a_valid_share_is_reported_as_progress() -> None:
    assert engine_events.share_of({"event": "progress", "share": 0.5, "rows_read": "many"}) == (0.5, "")
    assert engine_events.share_of({"event": "progress", "share": 7, "rows_read": 2000}) == (1.0, "2,000 rows read")
    assert engine_events.share_of({"event": "progress", "share": True}) is None


def test_each_sample_is_submitted_once_and_then_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(submit_samples, "submit", calls.append)

    def pause() -> bool:
        calls.append("pause")
        return calls.count("pause") == 4

    samples = list(submit_samples.CONFIGURATION_OF)
    first, second, third, *_ = sorted(samples)
    submit_samples.submit_forever(samples, pause=pause)
    assert calls == [*samples, "pause", first, "pause", second, "pause", third, "pause"]
