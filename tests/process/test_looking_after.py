"""What the system promises of a process: noticed when ready, started again, given up, ended with its group."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from apps.shared.definition import Process
from system import child as childhood
from system import ports
from system.child import Child, ParentPipe
from tests.process.support import descendants, gone, wait_for

ROOT = Path(__file__).parent.parent.parent
GRACE = 0.5

Start = Callable[..., Child]
TAKE = "import socket, sys; socket.create_server(('127.0.0.1', int(sys.argv[1])))"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a guest; none outlives the test."""
    reading, writing = os.pipe()
    started: list[Child] = []

    def start(*how: str, listening: socket.socket | None = None) -> Child:
        child = Child(
            Process(name="guest", module="tests.process.guest", arguments=how, ready="/" if listening else "ready"),
            parent_pipe=ParentPipe(reading=reading, grace=GRACE),
            environment=dict(os.environ),
            log=tmp_path / "guest.log",
            listening=listening,
        )
        started.append(child)
        child.start()
        return child

    yield start
    for child in started:
        child.kill()
        wait_for(child.ended)
    os.close(reading)
    os.close(writing)


def until(child: Child, state: str) -> None:
    def there() -> bool:
        child.look()
        return child.state == state

    wait_for(there, what=f"{state}, not {child.state}")


def test_it_is_up_when_it_says_that_it_is_ready(start: Start) -> None:
    child = start("stays")
    assert child.state == "starting"
    until(child, "up")


def test_one_that_is_killed_is_started_again_and_the_reason_is_told_meanwhile(start: Start) -> None:
    child = start("stays")
    until(child, "up")
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(child, "waiting")
    assert child.reason == "guest was ended by SIGKILL: ready"
    until(child, "up")
    assert (child.restarts, child.reason) == (1, "")
    assert child.pid != first


def test_one_that_keeps_dying_is_given_up_with_its_last_words(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(childhood, "PAUSE", 0.01)
    child = start("dies")
    until(child, "failed")
    assert (child.deaths, child.restarts) == (childhood.DEATHS, childhood.DEATHS - 1)
    assert child.reason == "guest ended with exit code 3: no such luck"


def test_no_other_process_gets_the_port_of_one_that_is_started_or_started_again(start: Start) -> None:
    listening = next(ports.listening(10_000 + os.getpid() % 20_000))
    port = listening.getsockname()[1]
    child = start("serves", "{fd}", listening=listening)
    assert _refused(port), "it has not begun to serve"
    until(child, "up")
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    until(child, "waiting")
    assert _refused(port), "no process serves the port now"
    until(child, "up")
    assert httpx.get(child.url).status_code == 204
    assert child.url == f"http://127.0.0.1:{port}"


def test_one_that_is_not_started_again_gives_its_port_back(start: Start) -> None:
    listening = next(ports.listening(10_000 + os.getpid() % 20_000))
    port = listening.getsockname()[1]
    child = start("serves", "{fd}", listening=listening)
    until(child, "up")
    child.terminate()
    wait_for(child.ended)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def _refused(port: int) -> bool:
    """Whether another process that asks for this port is refused."""
    asked = subprocess.run([sys.executable, "-S", "-c", TAKE, str(port)], capture_output=True, check=False, text=True)
    return "Address already in use" in asked.stderr


def test_the_pauses_grow(start: Start) -> None:
    child = start("dies")
    until(child, "waiting")
    first = child._again_at - child._started_at
    until(child, "starting")
    until(child, "waiting")
    assert child._again_at - child._started_at > first


def test_what_it_leaves_of_its_group_is_ended_with_it(start: Start) -> None:
    child = start("parent")
    until(child, "up")
    assert child.pid is not None
    [below] = descendants(child.pid)
    child.terminate()
    wait_for(child.ended)
    wait_for(lambda: gone(below), what="its own child goes too")


@pytest.mark.parametrize("how", ["stays", "ignores"])
def test_it_ends_when_its_parent_is_gone(how: str, tmp_path: Path) -> None:
    """Also one that does not listen: its group is killed when its time is up."""
    holder = (
        "import os, subprocess, sys, time\n"
        "reading, writing = os.pipe()\n"
        "command = [sys.executable, '-m', 'system.end_with_parent', str(reading)]\n"
        f"command += ['{GRACE}', 'tests.process.guest', {how!r}]\n"
        "child = subprocess.Popen(command, pass_fds=[reading], start_new_session=True, stdout=subprocess.PIPE)\n"
        "print(child.pid, child.stdout.readline().decode().strip(), flush=True)\n"
        "time.sleep(120)\n"
    )
    held = subprocess.Popen([sys.executable, "-c", holder], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert held.stdout is not None
        pid, said = held.stdout.readline().split()
        assert said == "ready"
        held.kill()
        wait_for(lambda: gone(int(pid)), what="it ends with its parent")
    finally:
        with contextlib.suppress(ProcessLookupError):
            held.kill()
        held.communicate()
