"""No acknowledged run is lost or duplicated while the processes of a web server are killed, recycled and reloaded.

`docs/guide/setups.md` lists the setups that are tested here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.process.support import PROGRAMS, descendants, gone, is_a_guardian, marks, overlaps
from tests.waiting import wait_for

pytestmark = pytest.mark.timeout(300)

REQUESTS = 100
GUNICORN = ("gunicorn", "--workers", "2")
SETUPS = {
    "uvicorn-fastapi": ("uvicorn", "web_apps:with_fastapi"),
    "gunicorn-preload-fastapi": (*GUNICORN, "--preload", "-k", "uvicorn_worker.UvicornWorker", "web_apps:with_fastapi"),
    "gunicorn-max-requests-flask": (
        *GUNICORN,
        *("--threads", "2", "--max-requests", "15", "-c", "python:web_apps", "web_apps:with_flask"),
    ),
}


class Server:
    """A web server on a socket that outlives the processes of the server."""

    def __init__(self, command: tuple[str, ...], log: Path) -> None:
        self._command, self._log = command, log.open("ab")
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.set_inheritable(True)
        self.killed: dict[int, float] = {}
        self._start()

    @property
    def has_children(self) -> bool:
        return self._command[0] == "gunicorn"

    def post(self) -> str | None:
        """Send a request; return its run id, or None if the server was killed before it answered."""

        def answer() -> list[str | None] | None:
            try:
                found = httpx.post(f"http://127.0.0.1:{self._listening.getsockname()[1]}/", timeout=30, verify=False)
                return [found.text if found.status_code == 200 else None]
            except (httpx.ReadError, httpx.RemoteProtocolError):
                return [None]
            except (httpx.ConnectError, httpx.TimeoutException):
                return None

        found: list[str | None] = wait_for(answer, at_most=120, what="an answer")
        return found[0]

    def kill(self) -> None:
        """Kill the serving process with SIGKILL; Gunicorn replaces its worker, and this method restarts Uvicorn."""
        victim = self._serving()
        os.kill(victim, signal.SIGKILL)
        self.killed[victim] = time.clock_gettime(time.CLOCK_BOOTTIME)
        if not self.has_children:
            self._process.wait()
            self._start()

    def reload(self) -> None:
        if self.has_children:
            self._process.send_signal(signal.SIGHUP)
        else:
            self._process.terminate()
            self._process.wait(timeout=60)
            self._start()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)
        self._listening.close()
        self._log.close()

    def _serving(self) -> int:
        if not self.has_children:
            return self._process.pid
        return int(wait_for(lambda: [pid for pid in self._children() if not gone(pid)])[0])

    def _children(self) -> list[int]:
        """The worker processes of Gunicorn, without the guardians that they start."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            task = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
            return [int(pid) for pid in task.read_text().split()]
        return []

    def _start(self) -> None:
        file = self._listening.fileno()
        where = ["--bind", f"fd://{file}"] if self.has_children else ["--fd", str(file)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", *self._command[:1], *where, *self._command[1:]],
            pass_fds=[file],
            env={**os.environ, "PYTHONPATH": str(PROGRAMS)},
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )


@pytest.fixture(params=SETUPS)
def server(
    request: pytest.FixtureRequest, local_url: str, load: Callable[..., Any], tmp_path: Path
) -> Iterator[tuple[Any, Server]]:
    app = load("web_apps", local_url)
    app.hf.start()
    server = Server(SETUPS[request.param], tmp_path / "server.log")
    try:
        yield app, server
    finally:
        left = list(descendants(os.getpid()))
        server.close()
        wait_for(lambda: not any(is_a_guardian(pid) for pid in left), what="guardians to end")


@pytest.mark.contract("S3", "L6")
def test_no_acknowledged_run_is_lost_or_duplicated_while_server_processes_restart(
    server: tuple[Any, Server], tmp_path: Path
) -> None:
    app, serving = server
    acknowledged = []
    for number in range(REQUESTS):
        if number in (20, 70):
            serving.kill()
        if number == 45:
            serving.reload()
        acknowledged.append(serving.post())
    runs = [run_id for run_id in acknowledged if run_id is not None]

    assert len(runs) > REQUESTS * 3 / 4
    ended = wait_for(lambda: _ended(app, runs), at_most=120, what="every run to end")
    assert {snapshot.state for snapshot in ended} == {"succeeded"}
    assert overlaps(marks(tmp_path), killed=serving.killed) == []
    assert app.hf.verify() == []


def _ended(app: Any, runs: list[str]) -> list[Any] | None:
    found = []
    for run_id in runs:
        snapshot = app.hf.snapshot(run_id)
        if not snapshot.ended:
            return None
        found.append(snapshot)
    return found
