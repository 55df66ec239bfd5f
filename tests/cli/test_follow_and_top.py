"""`holdfast submit --follow`, `holdfast runs follow` and `holdfast top`."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli import hostile_text
from tests.cli.conftest import Invoke, Shell
from tests.listing import runs_of

from holdfast import Context, Holdfast

ESCAPE_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """Runs the command in a terminal; a test reads its output and types into it."""

    def __init__(self, shell: Shell, *arguments: str, **environment: str) -> None:
        self._leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        clean = {name: value for name, value in shell.environment.items() if name not in ("NO_COLOR", "COLUMNS")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", *arguments],
            cwd=shell.folder,
            env=clean | {"TERM": "xterm-256color"} | environment,
            stdin=follower,
            stdout=follower,
            stderr=follower,
        )
        os.close(follower)
        self.written = ""

    def shows(self, text: str, *, within: float = 60) -> None:
        """Read until the terminal has shown this text."""
        give_up_at = time.monotonic() + within
        while text not in ESCAPE_SEQUENCE.sub("", self.written):
            assert time.monotonic() < give_up_at, f"{text!r} was not shown: {self.written[-2000:]}"
            self._read()

    def type(self, keys: str) -> None:
        os.write(self._leader, keys.encode())

    def wait_for_exit(self) -> int:
        while self.process.poll() is None:
            self._read()
        self._read()
        return self.process.returncode

    def _read(self) -> None:
        try:
            if select.select([self._leader], [], [], 0.1)[0]:
                self.written += os.read(self._leader, 65536).decode("utf-8", "replace")
        except OSError:
            self.process.wait(timeout=60)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)


@pytest.fixture
def working(shell: Shell) -> Shell:
    """A shell whose application has a running worker."""
    shell.start("worker", "app:hf", "-q", "default,risky")
    return shell


@pytest.fixture
def terminal(shell: Shell) -> Iterator[type[Terminal]]:
    opened: list[Terminal] = []

    class Opened(Terminal):
        def __init__(self, *arguments: str, **environment: str) -> None:
            super().__init__(shell, *arguments, **environment)
            opened.append(self)

    yield Opened
    for each in opened:
        each.close()


def test_follow_shows_a_progress_bar_with_the_log_above_it_and_the_result_at_the_end(
    working: Shell, terminal: type[Terminal]
) -> None:
    until = working.folder / "go"
    shown = terminal("submit", "app:hf", "work", "started=started", f"until={until}", "--follow")  # type: ignore[arg-type]
    shown.shows("half way")
    shown.shows("1 of 2")
    shown.shows("the first half")
    until.touch()
    assert shown.wait_for_exit() == 0
    assert "\x1b[33m" in shown.written  # a warning is yellow
    assert ESCAPE_SEQUENCE.sub("", shown.written).rstrip().splitlines()[-1].strip().endswith('"worked"')


def test_ctrl_c_stops_following_and_not_the_run(shell: Shell, terminal: type[Terminal], sqlite_url: str) -> None:
    shown = terminal("submit", "app:hf", "greet", "name=a", "--follow")  # type: ignore[arg-type]
    shown.shows("no worker is alive")
    shown.process.send_signal(signal.SIGINT)
    assert shown.wait_for_exit() == 130
    assert "is not affected" in shown.written
    with Holdfast(sqlite_url) as hf:
        assert [run.state for run in runs_of(hf)] == ["queued"]


def test_follow_writes_the_result_to_stdout_and_plain_event_lines_to_stderr(working: Shell, inside: Invoke) -> None:
    done = working("submit", "app:hf", "log", f"text={hostile_text.ESCAPE}", "--follow", "--timeout", "30")
    assert (done.returncode, done.stdout) == (0, "null\n")
    assert [line.split()[1] for line in done.stderr.splitlines()] == [
        *("RUN_QUEUED", "RUN_STARTED", "LOG", "RUN_SUCCEEDED"),
    ]
    assert not hostile_text.control_characters(done.stderr.replace("\n", ""))

    failed = inside("submit", "app:hf", "fail", "text=no", "--follow", "--timeout", "30")
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert failed.stderr.splitlines()[-1].startswith("holdfast: run_failed: ")


def test_follow_gives_up_at_its_timeout(shell: Shell, inside: Invoke) -> None:
    done = inside("submit", "app:hf", "letters.greet", "name=a", "--follow", "--timeout", "0.2")
    assert done.exit_code == 8
    assert done.stderr.splitlines()[-1].startswith("holdfast: result_timeout: ")


def test_arguments_come_from_a_file_or_from_stdin(shell: Shell, inside: Invoke, tmp_path: Path) -> None:
    (shell.folder / "ada.json").write_text('{"name": "Ada"}')
    assert inside("submit", "app:hf", "letters.greet", "--json-args", "@ada.json").exit_code == 0
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "submit", "app:hf", "letters.greet", "--json-args", "-"],
        cwd=shell.folder,
        env=shell.environment,
        input='{"name": "Bob"}',
        capture_output=True,
        text=True,
        timeout=45,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with Holdfast(shell.environment["HOLDFAST_URL"]) as hf:
        assert [run.args["name"] for run in runs_of(hf)] == ["Bob", "Ada"]


def test_followed_events_are_coloured_by_kind_and_level_unless_no_color_is_set(
    shell: Shell, sqlite_url: str, terminal: type[Terminal]
) -> None:
    with Holdfast(sqlite_url) as hf:

        @hf.job(name="warn")
        def warn(ctx: Context) -> None:
            ctx.log.warning("careful")

        run = warn.submit()
        with hf.worker():
            run.result(timeout=60)
    shown = terminal("runs", "follow", sqlite_url, run.id)  # type: ignore[arg-type]
    assert shown.wait_for_exit() == 0
    assert "\x1b[33mLOG" in shown.written
    assert "\x1b[36mRUN_STARTED" in shown.written
    assert "\x1b[32mRUN_SUCCEEDED" in shown.written
    plain = terminal("runs", "follow", sqlite_url, run.id, NO_COLOR="1")  # type: ignore[arg-type]
    assert plain.wait_for_exit() == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", plain.written)


def test_top_refreshes_until_q_is_pressed(working: Shell, inside: Invoke, terminal: type[Terminal]) -> None:
    until = working.folder / "go"
    inside("submit", "app:hf", "work", "started=started", f"until={until}")
    inside("submit", "app:hf", "fail", "text=out of paper", "--wait", "--timeout", "30")
    shown = terminal("top", "app:hf", "--interval", "0.2")  # type: ignore[arg-type]
    shown.shows("1 running of 8")
    shown.shows("letters.work")
    shown.shows("ValueError: out of paper")
    until.touch()
    shown.shows("0 running of 8")
    shown.type("q")
    assert shown.wait_for_exit() == 0
    assert "\x1b[?1049l" in shown.written  # the previous screen is restored


def test_top_once_prints_one_page_of_text(holdfast: Invoke, sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:
        hf.queue("mail", max_queued=5)

        @hf.job(name="post", queue="mail")
        def post(ctx: Context, text: str) -> None: ...

        post.submit(text=hostile_text.ALL)
        hf.queues.pause("mail", note=hostile_text.ESCAPE)
        shown = holdfast("top", sqlite_url, "--once").stdout
    assert "1 queued   0 running of 0   0 workers" in shown
    assert re.search(r"^mail +1 +1 +0 +1 of 5 ", shown, flags=re.MULTILINE)
    assert "no live workers" in shown
    assert "no failures" in shown
    assert not hostile_text.control_characters(shown.replace("\n", ""))
