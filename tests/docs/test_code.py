"""Whatever the README, the docs and the examples print as Python runs, as it is printed."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest
from tests.docs.pages import EXAMPLES, PAGES, ROOT, blocks, script

from holdfast import Holdfast
from holdfast.cli.main import main

TOUR = ROOT / "examples" / "tour.py"


def run(file: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", file, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=50,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=title)
def test_the_python_of_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(script(page))
    run(file, tmp_path)


def test_the_first_program_prints_what_the_readme_says(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(script(ROOT / "README.md"))
    assert run(file, tmp_path) == "4\n"


@pytest.mark.parametrize("example", [example for example in EXAMPLES if example != TOUR], ids=title)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    assert run(example, tmp_path)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=title)
def test_every_command_line_on_a_page_is_one_that_holdfast_takes(page: Path) -> None:
    lines = [line for block in blocks(page, "sh") for line in block.text.splitlines() if line.startswith("holdfast ")]
    for line in lines:
        command: click.Command = main
        words = line.split("#")[0].split()[1:]
        while isinstance(command, click.Group):
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", " ".join(["", *words]))) <= known, line


def test_the_example_that_joins_a_transaction_leaves_only_the_committed_run(tmp_path: Path) -> None:
    assert run(ROOT / "examples" / "transaction.py", tmp_path) == (
        "transaction.send_receipt {'order_id': 1} succeeded\n"
    )


def test_the_example_of_steps_downloads_once_in_two_attempts(tmp_path: Path) -> None:
    assert "attempts: 2 downloads: 1" in run(ROOT / "examples" / "steps.py", tmp_path)


def test_the_example_of_artifacts_draws_once_in_two_attempts(tmp_path: Path) -> None:
    assert "attempts: 2 drawn: 1" in run(ROOT / "examples" / "artifacts.py", tmp_path)


def test_the_tour_shows_every_ending_and_leaves_a_sound_database(tmp_path: Path) -> None:
    shown = run(TOUR, tmp_path, "--database", "tour.db")
    for state in ("succeeded", "failed", "timed_out", "cancelled"):
        assert f" {state} " in shown
    assert "verify: every run is in exactly one place" in shown
    assert f"holdfast runs list sqlite:///{tmp_path / 'tour.db'}" in shown
    with Holdfast(f"sqlite:///{tmp_path / 'tour.db'}") as hf:
        found = {run.job: run for run in hf.list_runs()}
        turns = [
            (run.started_at, run.finished_at)
            for run in reversed(hf.list_runs(job="index"))
            if run.started_at is not None and run.finished_at is not None
        ]
        retried = [event for event in hf.story(found["send_mail"].id) if event.kind == "RUN_RETRIED"]
    assert {name: run.state for name, run in found.items()} == {
        "resize": "succeeded",
        "import_feed": "failed",
        "send_mail": "succeeded",
        "index": "succeeded",
        "crawl": "timed_out",
        "report": "cancelled",
    }
    assert len(retried) == 1
    assert len(turns) == 3
    assert all(ended <= started for (_, ended), (started, _) in pairwise(turns))


def test_the_tour_stops_cleanly_when_interrupted(tmp_path: Path) -> None:
    tour = subprocess.Popen(
        [sys.executable, TOUR, "--database", tmp_path / "tour.db"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert tour.stdout is not None
    while "a job we cancel" not in tour.stdout.readline():
        pass
    tour.send_signal(signal.SIGINT)
    said, complaints = tour.communicate(timeout=30)
    assert (tour.returncode, complaints) == (130, "")
    assert "stopped; running work was given a moment to finish" in said
    with Holdfast(f"sqlite:///{tmp_path / 'tour.db'}") as hf:
        assert not [found for found in hf.list_runs() if found.state == "running"]
        assert hf.verify() == []
