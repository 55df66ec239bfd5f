"""A program of the engine: bounded, confined, without secrets, and gone when it has to be."""

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
from apps.ade.process import Ended, Limits, TookTooLong
from tests.process.support import gone, wait_for

LIMITS = Limits(seconds=30, memory=500_000_000, file_size=1_000_000)


def run(place: Path, code: str, *, limits: Limits = LIMITS) -> tuple[Ended, list[str]]:
    said: list[bytes] = []
    ended = process.execute(
        [sys.executable, "-I", "-c", code],
        folder=place,
        reads=[Path(sys.prefix)],
        limits=limits,
        on_line=said.append,
    )
    return ended, [line.decode() for line in said]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder


def test_what_it_says_comes_line_by_line_and_its_last_words_are_kept(place: Path) -> None:
    ended, said = run(place, "import sys; print('one'); print('two'); sys.exit('no more')")
    assert (ended.code, said, ended.last_words) == (1, ["one", "two"], "no more")


def test_it_knows_nothing_of_our_environment(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TOKEN", "a-secret-of-the-service")
    monkeypatch.setenv("HOLDFAST_URL", "postgresql://user:word@host/db")
    _, [said] = run(place, "import os, json; print(json.dumps([dict(os.environ), os.getcwd()]))")
    environment, folder = json.loads(said)
    assert "secret" not in said
    assert {name for name in environment if name.startswith(("HOLDFAST", "ADE"))} == set()
    assert Path(folder) == place


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
"""What must not work, by the version of Landlock from which on it can be forbidden."""


@pytest.mark.parametrize(
    "attempt", [attempt for since, attempts in CONFINED.items() if launch.abi() >= since for attempt in attempts]
)
def test_it_reaches_its_own_folder_and_nothing_else(place: Path, attempt: str) -> None:
    outside = place.parent / "outside.txt"
    outside.write_text("mine")
    with subprocess.Popen(["sleep", "60"]) as other:
        values = {"outside": outside, "port": 9, "pid": other.pid, "python": sys.executable}
        code = attempt
        for name, value in values.items():
            code = code.replace(f"{{{name}}}", str(value))
        ended, _ = run(place, code)
        other.kill()
    assert ended.code == 1
    assert "PermissionError" in ended.last_words or "CalledProcessError" in ended.last_words
    assert outside.read_text() == "mine"
    fine, _ = run(place, "open('inside.txt', 'w').write('x'); import os; os.mkdir('f'); os.rename('inside.txt', 'f/y')")
    assert fine == Ended(0, "")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = bytearray(900_000_000)", "MemoryError"),
        ("open('big', 'wb').write(bytes(2_000_000))", "File too large"),
        ("import resource; print(resource.getrlimit(resource.RLIMIT_CORE)); raise SystemExit('no core')", "no core"),
    ],
)
def test_memory_and_files_are_bounded(place: Path, code: str, said: str) -> None:
    ended, _ = run(place, code)
    assert ended.code in (1, -signal.SIGXFSZ)
    assert said in ended.last_words or ended.code == -signal.SIGXFSZ


@pytest.mark.contract("Q13")
def test_what_takes_too_long_is_stopped_with_all_that_it_started(place: Path) -> None:
    code = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", deaf])
open("pids", "w").write(f"{os.getpid()} {child.pid}")
time.sleep(600)
"""
    began = time.monotonic()
    with pytest.raises(TookTooLong, match="stopped after 2 s"):
        run(place, code, limits=Limits(seconds=2, memory=500_000_000, file_size=1_000_000))
    assert time.monotonic() - began < 30
    pids = [int(pid) for pid in (place / "pids").read_text().split()]
    wait_for(lambda: all(gone(pid) for pid in pids), what="all of the group are gone")


def test_one_that_has_ended_does_not_leave_a_child_behind(place: Path) -> None:
    code = """
import subprocess, sys
child = subprocess.Popen(["sleep", "600"])
open("pid", "w").write(str(child.pid))
"""
    ended, _ = run(place, code)
    assert ended.code == 0
    wait_for(lambda: gone(int((place / "pid").read_text())), what="the child is gone")


def test_it_dies_with_whoever_started_it(place: Path) -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path.cwd())!r})
from tests.apps.ade.test_ade_process import run
from pathlib import Path
run(Path({str(place)!r}), "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)")
"""
    with subprocess.Popen([sys.executable, "-c", script]) as parent:
        wait_for(lambda: (place / "pid").exists() and (place / "pid").read_text(), what="it has begun")
        pid = int((place / "pid").read_text())
        assert os.getpgid(pid) == pid
        assert os.getpgid(pid) != os.getpgid(parent.pid)
        parent.kill()
    wait_for(lambda: gone(pid), what="it is gone")


def test_what_says_too_much_is_read_to_the_end_and_bounded(place: Path) -> None:
    ended, said = run(place, "import sys\nfor n in range(30_000): print(n)\nprint('x' * 200_000)\nprint('end')")
    assert ended.code == 0
    assert len(said) == process.MOST_LINES
    assert said[0] == "0"
