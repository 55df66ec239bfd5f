"""Runs the Python code of the README, the docs and the examples as it is printed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
import pytest
from tests import python_process
from tests.docs.pages import EXAMPLES, PAGES, ROOT, blocks, script

from holdfast.cli.main import main


def run(file: Path, folder: Path, *arguments: str) -> str:
    done = python_process.run(
        [sys.executable, "-W", "error", file, *arguments],
        cwd=folder,
        timeout=120,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=title)
def test_the_python_blocks_of_a_page_run_in_order(page: Path, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(script(page))
    run(file, tmp_path)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if blocks(page, "python") and page.name not in ("testing.md", "simulation.md")],
    ids=title,
)
def test_the_python_blocks_of_a_page_do_nothing_when_imported(page: Path, tmp_path: Path) -> None:
    """A worker or a run's own process imports them in this way. The pages about tests are for a test runner instead."""
    (tmp_path / "app.py").write_text(script(page))
    file = tmp_path / "importer.py"
    file.write_text(
        "from holdfast.jobs.importing import importing\n\nwith importing('a test imports it'):\n    import app\n"
    )
    run(file, tmp_path)


def test_the_first_program_prints_what_the_readme_says(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(script(ROOT / "README.md"))
    assert run(file, tmp_path) == "4\n"


@pytest.mark.parametrize("example", EXAMPLES, ids=title)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    assert run(example, tmp_path)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "sh")], ids=title)
def test_every_command_line_on_a_page_is_valid(page: Path) -> None:
    lines = [line for block in blocks(page, "sh") for line in block.text.splitlines() if line.startswith("holdfast ")]
    for line in lines:
        command: click.Command = main
        words = line.split("#")[0].split()[1:]
        while isinstance(command, click.Group):
            below = command.get_command(click.Context(command), words.pop(0))
            assert below is not None, line
            command = below
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", " ".join(["", *words]))) <= known, line


def test_the_example_with_a_caller_transaction_stores_only_the_committed_run(tmp_path: Path) -> None:
    assert run(ROOT / "examples" / "transaction.py", tmp_path) == (
        "transaction.send_receipt {'order_id': 1} succeeded\n"
    )


def test_the_example_of_steps_downloads_once_in_two_attempts(tmp_path: Path) -> None:
    assert "attempts: 2 downloads: 1" in run(ROOT / "examples" / "steps.py", tmp_path)


def test_the_example_of_artifacts_generates_one_report_in_two_attempts(tmp_path: Path) -> None:
    assert "attempts: 2 reports generated: 1" in run(ROOT / "examples" / "artifacts.py", tmp_path)
