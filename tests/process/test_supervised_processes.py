"""Child processes of ./run: readiness, restarts, giving up, and stopping the whole process group."""

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
from system import child as child_module
from system import ports
from system.child import Child, ParentPipe
from tests.process.support import descendants, gone
from tests.waiting import wait_for

ROOT = Path(__file__).parent.parent.parent
GRACE = 0.5

Start = Callable[..., Child]
LISTEN = "import socket, sys; socket.create_server(('127.0.0.1', int(sys.argv[1])))"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a sample process; all are killed after the test."""
    reading, writing = os.pipe()
    started: list[Child] = []

    def start(*arguments: str, listening: socket.socket | None = None) -> Child:
        ready = "/" if listening else "ready"
        child = Child(
            Process(name="sample", module="tests.process.programs.supervised", arguments=arguments, ready=ready),
            parent_pipe=ParentPipe(reading=reading, grace=GRACE),
            environment=dict(os.environ),
            log=tmp_path / "sample.log",
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
    def reached() -> bool:
        child.poll()
        return child.state == state

    wait_for(reached, what=f"{state}, not {child.state}")


def test_a_process_is_up_when_it_prints_that_it_is_ready(start: Start) -> None:
    child = start("stays")
    assert child.state == "starting"
    until(child, "up")


def test_a_killed_process_is_restarted_and_shows_the_reason_until_then(start: Start) -> None:
    child = start("stays")
    until(child, "up")
    first = child.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(child, "waiting")
    assert child.reason == "sample was ended by SIGKILL: ready"
    until(child, "up")
    assert (child.restarts, child.reason) == (1, "")
    assert child.pid != first


def test_a_process_that_keeps_dying_is_given_up_and_shows_its_last_line(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_module, "FIRST_DELAY", 0.01)
    child = start("dies")
    until(child, "failed")
    assert (child.deaths, child.restarts) == (child_module.MAX_DEATHS, child_module.MAX_DEATHS - 1)
    assert child.reason == "sample ended with exit code 3: the disk is full"


def test_no_other_process_can_take_the_port_during_a_start_or_restart(start: Start) -> None:
    listening = next(ports.listening(10_000 + os.getpid() % 20_000))
    port = listening.getsockname()[1]
    child = start("serves", "{fd}", listening=listening)
    assert _refused(port), "the port is taken before the process serves"
    until(child, "up")
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    until(child, "waiting")
    assert _refused(port), "the port is taken while the process is down"
    until(child, "up")
    assert httpx.get(child.url).status_code == 204
    assert child.url == f"http://127.0.0.1:{port}"


def test_a_terminated_process_frees_its_port(start: Start) -> None:
    listening = next(ports.listening(10_000 + os.getpid() % 20_000))
    port = listening.getsockname()[1]
    child = start("serves", "{fd}", listening=listening)
    until(child, "up")
    child.terminate()
    wait_for(child.ended)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def _refused(port: int) -> bool:
    """Whether another process fails to listen on this port."""
    other = subprocess.run([sys.executable, "-S", "-c", LISTEN, str(port)], capture_output=True, check=False, text=True)
    return "Address already in use" in other.stderr


def test_the_delay_before_a_restart_grows(start: Start) -> None:
    child = start("dies")
    until(child, "waiting")
    first = child._restart_at - child._started_at
    until(child, "starting")
    until(child, "waiting")
    assert child._restart_at - child._started_at > first


def test_the_rest_of_the_process_group_is_killed_when_the_process_ends(start: Start) -> None:
    child = start("parent")
    until(child, "up")
    assert child.pid is not None
    [grandchild] = descendants(child.pid)
    child.terminate()
    wait_for(child.ended)
    wait_for(lambda: gone(grandchild), what="the grandchild is killed too")


@pytest.mark.parametrize("behaviour", ["stays", "ignores"])
def test_a_process_ends_when_its_parent_dies(behaviour: str, tmp_path: Path) -> None:
    """A process that ignores SIGTERM is killed with its group after the grace period."""
    program = (
        "import os, subprocess, sys, time\n"
        "reading, writing = os.pipe()\n"
        "command = [sys.executable, '-m', 'system.end_with_parent', str(reading)]\n"
        f"command += ['{GRACE}', 'tests.process.programs.supervised', {behaviour!r}]\n"
        "child = subprocess.Popen(command, pass_fds=[reading], start_new_session=True, stdout=subprocess.PIPE)\n"
        "print(child.pid, child.stdout.readline().decode().strip(), flush=True)\n"
        "time.sleep(120)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None
        pid, printed = parent.stdout.readline().split()
        assert printed == "ready"
        parent.kill()
        wait_for(lambda: gone(int(pid)), what="the child ends when its parent dies")
    finally:
        with contextlib.suppress(ProcessLookupError):
            parent.kill()
        parent.communicate()
