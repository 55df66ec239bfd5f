"""The oldest supported PostgreSQL, and every Python on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.postgres import postgres_server
from tests.process.support import PROGRAMS

ROOT = Path(__file__).parents[2]


def smoke(python: Path | str, url: str) -> str:
    done = subprocess.run(
        [python, PROGRAMS / "smoke.py", url],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout + done.stderr


def test_the_smoke_test_passes_on_postgresql_16() -> None:
    with postgres_server(16, "--fsync=off") as server:
        assert smoke(sys.executable, server.url) == "all good\n"


def other_pythons() -> list[str]:
    """Interpreters of Python 3.11 or newer on the PATH or in pyenv, one per minor version except the current one."""
    names = [f"python3.{minor}" for minor in range(11, 16)]
    kept = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob("3.1[1-9]*/bin/python3"))
    found = [shutil.which(name) for name in names] + [str(path) for path in kept]
    working: dict[str, str] = {}
    for python in filter(None, found):
        answer = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
        version = answer.stdout.strip().removeprefix("Python ")
        if answer.returncode == 0 and version.split(".")[:2] != list(map(str, sys.version_info[:2])):
            working.setdefault(".".join(version.split(".")[:2]), python)
    return list(working.values())


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_smoke_test_passes_on_every_python_of_this_machine(tmp_path: Path) -> None:
    for python in other_pythons():
        folder = tmp_path / Path(python).name
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True, stdin=subprocess.DEVNULL)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--upgrade", "pip"], check=True, stdin=subprocess.DEVNULL)
        subprocess.run([*pip, str(ROOT)], check=True, stdin=subprocess.DEVNULL)
        assert smoke(folder / "bin" / "python", f"sqlite:///{folder}/work.db") == "all good\n", python
