"""Error messages suggest a similar name, and show the traceback of an application on request."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Invoke, json_output

from holdfast import Holdfast


@pytest.fixture
def url(sqlite_url: str) -> str:
    with Holdfast(sqlite_url) as hf:
        for name in ("app.report", "other"):
            hf.job(name=name)(lambda: None).submit()
    return sqlite_url


@pytest.mark.contract("S4")
def test_the_last_part_of_a_job_name_is_enough_if_it_is_unique(holdfast: Invoke, url: str) -> None:
    for name in ("report", "app.report"):
        [run] = json_output(holdfast("runs", "list", url, "--job", name, "--json"))["items"]
        assert run["job"] == "app.report"
    with Holdfast(url) as hf:
        hf.build(name="app.environment")(lambda fingerprint: None).submit(fingerprint="f")
    [build] = json_output(holdfast("builds", "list", url, "--job", "environment", "--json"))["items"]
    assert build["job"] == "app.environment"


@pytest.mark.contract("S4")
def test_an_unknown_name_is_answered_with_a_similar_one(holdfast: Invoke, url: str) -> None:
    assert holdfast("runs", "list", url, "--job", "reprt").stderr == "no matching runs; did you mean app.report?\n"
    assert holdfast("runs", "list", url, "--job", "quite_another").stderr == "no matching runs\n"


@pytest.mark.contract("S4")
def test_an_application_that_cannot_be_loaded_is_shown_with_its_traceback_on_request(
    inside: Invoke, tmp_path: Path
) -> None:
    (tmp_path / "slipped.py").write_text("from holdfast import Holdfast\n\nhf = Holdfast()\nhf.job(priority='high')\n")
    shown = inside("--debug", "runs", "list", "slipped:hf")
    assert shown.exit_code == 2
    assert "Traceback" in shown.stderr
    assert "hf.job(priority='high')" in shown.stderr
    assert shown.stderr.splitlines()[-1].startswith("holdfast: cannot_load: ")
