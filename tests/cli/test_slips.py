"""Slips at the command line: what was meant is found or named, and what is wrong is shown where the user wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Invoke, told

from holdfast import Holdfast


@pytest.fixture
def url(sqlite_url: str) -> str:
    with Holdfast(sqlite_url) as hf:
        for name in ("app.report", "other"):
            hf.job(name=name)(lambda: None).submit()
    return sqlite_url


@pytest.mark.contract("S4")
def test_the_last_part_of_a_jobs_name_will_do_where_only_one_has_it(holdfast: Invoke, url: str) -> None:
    for name in ("report", "app.report"):
        [run] = told(holdfast("runs", "list", url, "--job", name, "--json"))["items"]
        assert run["job"] == "app.report"
    with Holdfast(url) as hf:
        hf.build(name="app.environment")(lambda fingerprint: None).submit(fingerprint="f")
    [build] = told(holdfast("builds", "list", url, "--job", "environment", "--json"))["items"]
    assert build["job"] == "app.environment"


@pytest.mark.contract("S4")
def test_a_name_that_no_run_has_is_answered_with_one_that_some_have(holdfast: Invoke, url: str) -> None:
    assert holdfast("runs", "list", url, "--job", "reprt").stderr == "no runs like that; did you mean app.report?\n"
    assert holdfast("runs", "list", url, "--job", "quite_another").stderr == "no runs like that\n"


@pytest.mark.contract("S4")
def test_an_application_that_can_not_be_loaded_is_shown_with_its_traceback_when_asked(
    inside: Invoke, tmp_path: Path
) -> None:
    (tmp_path / "slipped.py").write_text("from holdfast import Holdfast\n\nhf = Holdfast()\nhf.job(priority='high')\n")
    shown = inside("--debug", "runs", "list", "slipped:hf")
    assert shown.exit_code == 2
    assert "Traceback" in shown.stderr
    assert "hf.job(priority='high')" in shown.stderr
    assert shown.stderr.splitlines()[-1].startswith("holdfast: cannot_load: ")
