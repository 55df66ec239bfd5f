"""How results and errors are printed, in a terminal and in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from tests.cli import hostile_text
from tests.cli.conftest import Invoke, Shell
from tests.sample_app import declare

from holdfast import Holdfast
from holdfast.cli import exit_codes, screen
from holdfast.support.errors import HoldfastError
from holdfast.support.text import plain
from holdfast.testing import Manual
from holdfast.web import server

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def in_a_terminal(shell: Shell, *arguments: str, columns: int = 80, **environment: str) -> str:
    """The output of the command in a terminal with this many columns."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {name: value for name, value in shell.environment.items() if name not in ("NO_COLOR", "COLUMNS")}
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *arguments],
        cwd=shell.folder,
        env=clean | {"TERM": "xterm-256color"} | environment,
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    written = b""
    try:
        while block := os.read(leader, 65536):
            written += block
    except OSError:
        pass  # the other end is closed: the process has ended
    os.close(leader)
    assert process.wait(timeout=60) == 0
    return written.decode().replace("\r\n", "\n")


@pytest.fixture
def run_id(inside: Invoke) -> str:
    return inside("submit", "app:hf", "echo", f"value={hostile_text.ALL}", "--key", "k" * 60).stdout.strip()


def test_a_table_fits_the_terminal_and_an_id_is_never_cut(
    shell: Shell, inside: Invoke, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {80: in_a_terminal(shell, "runs", "list", "app:hf", columns=80)}
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich treat the output as a terminal
    for columns in (40, 120, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown[columns] = inside("runs", "list", "app:hf").stdout
    for columns, table in shown.items():
        header, row = COLOUR.sub("", table).splitlines()
        assert header.startswith("ID")
        assert row.startswith(f"{run_id}  queued")
        assert max(len(header), len(row)) <= columns


def test_output_in_a_terminal_is_coloured_unless_no_color_is_set(shell: Shell, run_id: str) -> None:
    assert "\x1b[33mqueued" in in_a_terminal(shell, "runs", "list", "app:hf")
    for shown in (
        in_a_terminal(shell, "runs", "list", "app:hf", NO_COLOR="1"),
        in_a_terminal(shell, "runs", "list", "app:hf", TERM="dumb"),
    ):
        assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", shown)


def test_hostile_text_cannot_control_a_terminal(shell: Shell, run_id: str) -> None:
    shown = in_a_terminal(shell, "runs", "show", "app:hf", run_id, NO_COLOR="1")
    assert not hostile_text.control_characters(COLOUR.sub("", shown))


def test_a_pipe_gets_whole_lines_without_colour(shell: Shell, inside: Invoke, run_id: str) -> None:
    done = shell("runs", "list", "app:hf")
    header, row = done.stdout.splitlines()
    assert "\x1b" not in done.stdout
    assert row.split()[:3] == [run_id, "queued", "letters.echo"]
    assert header == header.rstrip()

    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        declare(hf)
        hf.submit("letters.fail", text="long " * 40)
        Manual(hf).run_all()
    assert f"ValueError: {'long ' * 40}".strip() in inside("runs", "list", "app:hf").stdout


def test_output_works_on_an_ascii_terminal(shell: Shell, run_id: str) -> None:
    done = shell("runs", "show", "app:hf", run_id, PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_a_closed_pipe_causes_no_traceback(shell: Shell) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "doctor", "app:hf"],
        cwd=shell.folder,
        env=shell.environment,
        stdin=subprocess.DEVNULL,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        timeout=30,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (exit_codes.CLOSED_PIPE, "")


def test_holdfast_and_python_m_holdfast_print_the_same_help(shell: Shell, inside: Invoke) -> None:
    script = Path(sys.executable).parent / "holdfast"
    by_script = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=30, check=True)
    assert by_script.stdout == shell("--help").stdout
    assert inside("--version").stdout.startswith("holdfast, version ")


@pytest.mark.parametrize("arguments", [[], ["runs"]])
def test_a_command_group_without_a_command_prints_its_help(holdfast: Invoke, arguments: list[str]) -> None:
    result = holdfast(*arguments)
    assert result.exit_code == 2
    assert "Commands:" in result.stderr


def test_an_unexpected_error_is_printed_as_one_line(
    holdfast: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"broken {hostile_text.ESCAPE}")

    monkeypatch.setattr("holdfast.cli.targets.resolve", broken)
    result = holdfast("verify", "sqlite:///x")
    assert (result.exit_code, result.stderr) == (
        1,
        "holdfast: unexpected: RuntimeError: broken \\x1b[31mred\\x1b[0m (--debug shows the traceback)\n",
    )


def test_every_error_code_with_an_exit_code_exists() -> None:
    def codes(error: type[HoldfastError]) -> set[str]:
        return {error.code}.union(*(codes(each) for each in error.__subclasses__()))

    assert server.__name__  # the import defines errors of the server
    assert exit_codes.BY_ERROR.keys() <= codes(HoldfastError)
    assert set(exit_codes.BY_ERROR.values()) <= exit_codes.MEANINGS.keys()


def test_plain_escapes_control_characters_and_keeps_other_text() -> None:
    assert plain("grüße, 世界 👩‍👩‍👧 שלום [bold]") == "grüße, 世界 👩‍👩‍👧 שלום [bold]"
    assert plain("a\nb\tc") == "a\\nb\\tc"
    assert plain("a\nb\tc", lines=True) == "a\nb\tc"
    assert plain("\ud800\x1b\x9b\u202e\ufeff") == "\\ud800\\x1b\\x9b\\u202e\\ufeff"


def test_a_cell_is_shortened_in_a_terminal_and_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    assert screen.short("x" * 50, 10) == "x" * 50
    monkeypatch.setenv("FORCE_COLOR", "1")  # makes rich treat the output as a terminal
    assert screen.short("x" * 50, 10) == "x" * 9 + "…"


def test_doctor_warns_of_a_sqlite_library_that_can_lose_pages(shell: Shell) -> None:
    old = (
        "import sqlite3.dbapi2\nsqlite3.dbapi2.sqlite_version_info = (3, 40, 1)\nfrom holdfast.cli import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", old, "doctor", "app:hf"],
        cwd=shell.folder,
        env=shell.environment | {"HOLDFAST_SQLITE_MODULE": "sqlite3"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "can lose committed pages when another program checkpoints the file" in " ".join(done.stderr.split())
