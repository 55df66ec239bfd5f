"""Slips at the command line: what was meant is found or named, and what is wrong is shown where the user wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.conftest import Invoke, told
from tests.listing import runs_of

from holdfast import Context, Holdfast


@pytest.fixture
def url(sqlite_url: str) -> str:
    with Holdfast(sqlite_url) as hf:
        for name in ("app.report", "mine.twice", "yours.twice"):
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
    several = holdfast("runs", "list", url, "--job", "twice")
    assert (several.exit_code, several.stdout) == (2, "")
    assert "'twice' may be mine.twice or yours.twice; write the whole name" in several.stderr


@pytest.mark.contract("S4")
def test_a_name_that_no_run_has_is_answered_with_one_that_some_have(holdfast: Invoke, url: str) -> None:
    assert holdfast("runs", "list", url, "--job", "reprt").stderr == "no runs like that; did you mean app.report?\n"
    assert holdfast("runs", "list", url, "--job", "quite_another").stderr == "no runs like that\n"


@pytest.mark.contract("S4")
def test_an_application_that_can_not_be_loaded_is_shown_at_the_users_own_line(inside: Invoke, tmp_path: Path) -> None:
    (tmp_path / "slipped.py").write_text("from holdfast import Holdfast\n\nhf = Holdfast()\nhf.job(priority='high')\n")
    (tmp_path / "unfinished.py").write_text("import os\n\ndef (\n")
    for name, line in (("slipped", 4), ("unfinished", 3)):
        said = inside("runs", "list", f"{name}:hf")
        assert (said.exit_code, said.stderr.count("\n")) == (2, 1)
        assert f"({tmp_path}/{name}.py line {line}): " in said.stderr

    shown = inside("--debug", "runs", "list", "slipped:hf")
    assert shown.exit_code == 2
    assert "Traceback" in shown.stderr
    assert "hf.job(priority='high')" in shown.stderr
    assert shown.stderr.splitlines()[-1].startswith("holdfast: cannot_load: ")


@pytest.mark.contract("S4")
@pytest.mark.parametrize("line", ["greet.submit()", "hf.worker().start()", "greet()"])
def test_a_command_refuses_an_application_that_acts_when_it_is_imported(
    inside: Invoke, tmp_path: Path, line: str
) -> None:
    (tmp_path / "unguarded.py").write_text(
        f"from holdfast import Holdfast\n\nhf = Holdfast()\n\n\n@hf.job()\ndef greet() -> None: ...\n\n\n{line}\n"
    )
    for command in (["worker", "unguarded:hf", "--drain"], ["submit", "unguarded:hf", "greet"]):
        said = inside(*command)
        assert (said.exit_code, said.stdout, said.stderr.count("\n")) == (2, "", 1)
        assert said.stderr.startswith(f"holdfast: not_guarded: {tmp_path}/unguarded.py line 10 ")
        assert said.stderr.endswith('; put this below: if __name__ == "__main__":\n')
    with Holdfast() as hf:
        assert runs_of(hf) == []


@pytest.mark.contract("S4")
def test_an_artifact_that_can_not_be_written_is_said_in_one_line(inside: Invoke, tmp_path: Path) -> None:
    (tmp_path / "maker.py").write_text(
        "from holdfast import Context, Holdfast\n\nhf = Holdfast()\n\n\n"
        "@hf.job()\ndef make(ctx: Context) -> None:\n    ctx.artifact('a.txt', b'hello')\n"
    )
    with Holdfast() as hf:

        @hf.job(name="maker.make")
        def make(ctx: Context) -> None:
            ctx.artifact("a.txt", b"hello")

        run = make.submit()
        with hf.worker(drain=True) as worker:
            worker.join(timeout=60)

    said = inside("artifacts", "get", "maker:hf", run.id, "a.txt", "-o", "nosuchdir/a.txt")
    assert (said.exit_code, said.stdout, said.stderr.count("\n")) == (2, "", 1)
    assert said.stderr.startswith("holdfast: usage: ")
    assert "nosuchdir/a.txt" in said.stderr
    assert inside("artifacts", "get", "maker:hf", run.id, "a.txt", "-o", "a.txt").exit_code == 0
    assert (tmp_path / "a.txt").read_bytes() == b"hello"
