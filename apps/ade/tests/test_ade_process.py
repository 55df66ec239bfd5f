"""Processes of the engine: limited, confined, without secrets, and killed when they must end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from apps.ade import launch, process
from apps.ade.process import Ended, Limits, TimedOut
from tests.process.support import gone, wait_for

LIMITS = Limits(seconds=30, memory=500_000_000, file_size=1_000_000)


def run(folder: Path, code: str, *, limits: Limits = LIMITS) -> tuple[Ended, list[str]]:
    lines: list[bytes] = []
    ended = process.execute(
        [sys.executable, "-I", "-c", code],
        folder=folder,
        reads=[Path(sys.prefix)],
        limits=limits,
        on_line=lines.append,
    )
    return ended, [line.decode() for line in lines]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    created = tmp_path / "work"
    created.mkdir()
    return created


def test_output_comes_line_by_line_and_the_end_of_stderr_is_kept(folder: Path) -> None:
    ended, lines = run(folder, "import sys; print('one'); print('two'); sys.exit('an error')")
    assert (ended.code, lines, ended.stderr) == (1, ["one", "two"], "an error")


def test_a_program_gets_none_of_the_service_s_environment_variables(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ADMIN_TOKEN", "a-secret-of-the-service")
    monkeypatch.setenv("HOLDFAST_URL", "postgresql://user:word@host/db")
    _, [line] = run(folder, "import os, json; print(json.dumps([dict(os.environ), os.getcwd()]))")
    environment, working_folder = json.loads(line)
    assert "secret" not in line
    assert {name for name in environment if name.startswith(("HOLDFAST", "ADE"))} == set()
    assert Path(working_folder) == folder


CONFINED = {
    1: [
        "open('{outside}').read()",
        "open('{outside}', 'w')",
        "open('/etc/passwd').read()",
        "import os; os.listdir('/root' if os.path.isdir('/root') else '/home')",
        "import os; os.unlink('{outside}')",
        "import os; os.symlink('{outside}', 'link'); open('link').read()",
        "import subprocess; subprocess.run(['{python}', '-c', \"open('{outside}').read()\"], check=True)",
    ],
    4: ["import socket; socket.create_connection(('127.0.0.1', {port}), 5)"],
    6: ["import os, signal; os.kill({pid}, 0)"],
}
"""Code that must fail, by the first version of Landlock that can forbid it."""


@pytest.mark.parametrize(
    "attempt", [attempt for since, attempts in CONFINED.items() if launch.abi() >= since for attempt in attempts]
)
def test_a_program_can_access_only_its_own_folder(folder: Path, attempt: str) -> None:
    outside = folder.parent / "outside.txt"
    outside.write_text("mine")
    with subprocess.Popen(["sleep", "60"]) as other:
        values = {"outside": outside, "port": 9, "pid": other.pid, "python": sys.executable}
        code = attempt
        for name, value in values.items():
            code = code.replace(f"{{{name}}}", str(value))
        ended, _ = run(folder, code)
        other.kill()
    assert ended.code == 1
    assert "PermissionError" in ended.stderr or "CalledProcessError" in ended.stderr
    assert outside.read_text() == "mine"
    fine, _ = run(
        folder, "open('inside.txt', 'w').write('x'); import os; os.mkdir('f'); os.rename('inside.txt', 'f/y')"
    )
    assert fine == Ended(0, "")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = bytearray(900_000_000)", "MemoryError"),
        ("open('big', 'wb').write(bytes(2_000_000))", "File too large"),
        ("import resource; print(resource.getrlimit(resource.RLIMIT_CORE)); raise SystemExit('no core')", "no core"),
    ],
)
def test_memory_and_file_sizes_are_limited(folder: Path, code: str, message: str) -> None:
    ended, _ = run(folder, code)
    assert ended.code in (1, -signal.SIGXFSZ)
    assert message in ended.stderr or ended.code == -signal.SIGXFSZ


@pytest.mark.contract("Q13")
def test_a_timed_out_program_is_killed_with_its_children(folder: Path) -> None:
    code = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ignore = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", ignore])
open("pids", "w").write(f"{os.getpid()} {child.pid}")
time.sleep(600)
"""
    began = time.monotonic()
    with pytest.raises(TimedOut, match="killed after 2 s"):
        run(folder, code, limits=Limits(seconds=2, memory=500_000_000, file_size=1_000_000))
    assert time.monotonic() - began < 30
    pids = [int(pid) for pid in (folder / "pids").read_text().split()]
    wait_for(lambda: all(gone(pid) for pid in pids), what="the whole group is gone")


def test_a_program_that_ends_leaves_no_child_behind(folder: Path) -> None:
    code = """
import subprocess, sys
child = subprocess.Popen(["sleep", "600"])
open("pid", "w").write(str(child.pid))
"""
    ended, _ = run(folder, code)
    assert ended.code == 0
    wait_for(lambda: gone(int((folder / "pid").read_text())), what="the child is gone")


def test_a_program_dies_with_its_parent(folder: Path) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path.cwd())!r})
from apps.ade.tests.test_ade_process import run
from pathlib import Path
run(Path({str(folder)!r}), "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)")
"""
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text(), what="the program has started")
        pid = int((folder / "pid").read_text())
        assert os.getpgid(pid) == pid
        assert os.getpgid(pid) != os.getpgid(parent.pid)
        parent.kill()
    wait_for(lambda: gone(pid), what="the program is gone")


def test_too_much_output_is_read_to_the_end_but_cut(folder: Path) -> None:
    ended, lines = run(folder, "import sys\nfor n in range(30_000): print(n)\nprint('x' * 200_000)\nprint('end')")
    assert ended.code == 0
    assert len(lines) == process.MAX_LINES
    assert lines[0] == "0"
