"""Runs the `holdfast` command, in this process or as a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests import python_process
from tests.python_process import PythonProcess

from holdfast.cli import main

APP = """
from tests.sample_app import declare

from holdfast import Holdfast

hf = Holdfast(poll_interval=0.05)
declare(hf)
empty = Holdfast()
other = object()
"""
ROOT = Path(__file__).parent.parent.parent

Invoke = Callable[..., Result]


@pytest.fixture
def holdfast() -> Invoke:
    """Runs the command in this process and returns its output and its exit code."""

    def invoke(*arguments: str) -> Result:
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return invoke


def json_output(result: Result) -> Any:
    """Parses the single JSON document that a command printed."""
    assert result.stdout.count("\n") == 1, result.stdout
    return json.loads(result.stdout)


def without_warnings(stderr: str) -> list[str]:
    """The lines of standard error, except for logged warnings."""
    return [line for line in stderr.splitlines() if " WARNING " not in line]


class Shell:
    """A folder with an application; calling the object runs the real command there."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.environment = {**os.environ, "HOLDFAST_URL": url, "PYTHONWARNINGS": "error", "PYTHONPATH": str(ROOT)}
        self._started: list[subprocess.Popen[str]] = []
        (folder / "app.py").write_text(APP)

    def __call__(self, *arguments: str | bytes, **environment: str) -> subprocess.CompletedProcess[str]:
        return python_process.run(
            [sys.executable, "-m", "holdfast", *arguments],
            cwd=self.folder,
            env=self.environment | environment,
            timeout=120,
        )

    def start(self, *arguments: str, files: Sequence[int] = (), **environment: str) -> subprocess.Popen[str]:
        """Start the command and leave it running, with these open files; `close` kills it at the end of the test."""
        process = PythonProcess(
            [sys.executable, "-m", "holdfast", *arguments],
            cwd=self.folder,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            pass_fds=files,
        )
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate()


@pytest.fixture
def shell(tmp_path: Path, sqlite_url: str) -> Iterator[Shell]:
    made = Shell(tmp_path, sqlite_url)
    yield made
    made.close()


@pytest.fixture
def inside(shell: Shell, holdfast: Invoke, monkeypatch: pytest.MonkeyPatch) -> Iterator[Invoke]:
    """Runs the command in this process and in the shell's folder, which is faster than `shell`."""
    before = set(sys.modules)
    monkeypatch.chdir(shell.folder)
    monkeypatch.setenv("HOLDFAST_URL", shell.environment["HOLDFAST_URL"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield holdfast
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(shell.folder)):
            del sys.modules[name]


@pytest.fixture
def postgres_shell(tmp_path: Path, postgres_url: str) -> Iterator[Shell]:
    made = Shell(tmp_path, postgres_url)
    yield made
    made.close()
