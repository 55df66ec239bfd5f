"""No run is lost while processes are killed and old SQLite clients open and close the file."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.listing import runs_of
from tests.postgres import PostgresServer, postgres_server
from tests.process.support import PROGRAMS, WorkerProcess, descendants, marks, outside_clients, overlaps
from tests.python_process import PythonProcess

from holdfast import Holdfast

Start = Callable[..., WorkerProcess]

pytestmark = pytest.mark.timeout(180)


class Submitter:
    """Submits `count` runs from processes that are killed, `lives` of them one after the other."""

    def __init__(self, count: int, *, lives: int) -> None:
        self.acknowledged: list[str] = []
        self._count, self._lives = count, lives
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Submitter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def _run(self) -> None:
        for _ in range(self._lives):
            wanted = self._count // self._lives
            process = PythonProcess(
                [sys.executable, PROGRAMS / "keyed_jobs.py", "1000000"], stdout=subprocess.PIPE, text=True
            )
            assert process.stdout is not None
            for line in itertools.islice(process.stdout, wanted):
                self.acknowledged.append(line.strip())
            process.kill()
            self.acknowledged += [line.strip() for line in process.stdout if len(line.strip()) == 26]
            process.communicate()


def churn(start: Start, *, workers: int, life: float, until: Callable[[], bool]) -> dict[int, float]:
    """Keep this many workers running and kill each after about `life` seconds; return the kill times by pid."""
    killed: dict[int, float] = {}
    alive: list[tuple[WorkerProcess, float]] = []
    chance = random.Random(1)
    while len(killed) < workers or not until():
        while len(alive) < workers:
            alive.append((start("keyed_jobs", "4").ready(), time.monotonic() + life * chance.uniform(0.5, 1.5)))
        time.sleep(0.1)
        for victim, over_at in list(alive):
            if time.monotonic() >= over_at:
                victim.signal(signal.SIGKILL)
                killed[victim.pid] = time.clock_gettime(time.CLOCK_BOOTTIME)
                victim.process.wait()
                alive.remove((victim, over_at))
    return killed


def check_all_succeeded(hf: Holdfast, acknowledged: list[str]) -> None:
    """Check that the acknowledged runs are stored, every stored run has succeeded and the database is consistent."""
    stored = {run.id: run.state for run in runs_of(hf)}
    assert set(acknowledged) <= set(stored)
    assert set(stored.values()) == {"succeeded"}
    assert hf.verify() == []


def unfinished(hf: Holdfast) -> int:
    return sum(hf.counts()[state].number for state in ("queued", "running"))


@pytest.mark.contract("S3")
def test_killed_workers_and_submitters_lose_no_run_while_old_sqlite_clients_use_the_file(
    load: Callable[..., Any], sqlite_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("keyed_jobs", sqlite_url, TEST_LEASE="2")
    app.hf.start()
    with outside_clients(tmp_path):
        with Submitter(300, lives=3) as submitter:
            killed = churn(start_worker, workers=2, life=2.5, until=lambda: submitter.done and not unfinished(app.hf))
    assert killed
    check_all_succeeded(app.hf, submitter.acknowledged)
    assert overlaps(marks(tmp_path), killed=killed) == []


@pytest.mark.contract("S3")
def test_killed_gunicorn_workers_lose_no_run_while_old_sqlite_clients_use_the_file(
    load: Callable[..., Any], sqlite_url: str, tmp_path: Path
) -> None:
    app = load("gunicorn_app", sqlite_url)
    log = open(tmp_path / "gunicorn.log", "wb")  # noqa: SIM115
    with log, socket.create_server(("127.0.0.1", 0)) as listening, outside_clients(tmp_path):
        listening.set_inheritable(True)
        command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--chdir", str(PROGRAMS)]
        server = subprocess.Popen(
            [
                *command,
                "-k",
                "uvicorn_worker.UvicornWorker",
                "--bind",
                f"fd://{listening.fileno()}",
                "gunicorn_app:app",
            ],
            pass_fds=[listening.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        try:
            acknowledged = [_submitted(address, server, number) for number in range(200)]
        finally:
            server.terminate()
            server.wait(timeout=30)
    stored = {run.id for run in runs_of(app.hf)}
    assert {run_id for run_id in acknowledged if run_id is not None} <= stored
    assert sum(run_id is not None for run_id in acknowledged) > 150
    assert app.hf.verify() == []


def _submitted(address: str, server: subprocess.Popen[bytes], number: int) -> str | None:
    """Send a request; return its run id, or None if it failed. Every twentieth request first kills a server worker."""
    if number % 20 == 10:
        for pid in list(descendants(server.pid))[:1]:
            os.kill(pid, signal.SIGKILL)
    for _ in range(100):
        with contextlib.suppress(httpx.ConnectError, httpx.ReadTimeout):
            try:
                answer = httpx.get(address, timeout=20, verify=False)
                return answer.text if answer.status_code == 200 else None
            except (httpx.ReadError, httpx.RemoteProtocolError):
                return None  # killed during the request: the run may be stored or not
        assert server.poll() is None
        time.sleep(0.1)
    raise AssertionError("the server does not answer")


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.contract("S3", "L6", "L7")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_five_thousand_keyed_runs_survive_random_kills(
    load: Callable[..., Any], store: str, tmp_path: Path, start_worker: Start
) -> None:
    """Each of four workers lives a few seconds, while old SQLite clients or crashes of PostgreSQL interfere."""
    with contextlib.ExitStack() as opened:
        if store == "sqlite":
            url, disturbance = f"sqlite:///{tmp_path / 'work.db'}", outside_clients(tmp_path)
        else:
            server = opened.enter_context(postgres_server(18))
            url, disturbance = server.url, crashes(server)
        app = load("keyed_jobs", url, TEST_LEASE="15")
        app.hf.start()
        opened.callback(app.hf.close)
        runs = [{"key": f"key {number % 50}", "number": number} for number in range(5000)]
        acknowledged = [run.id for run in app.work.submit_many(runs)]
        with disturbance:
            killed = churn(start_worker, workers=4, life=4, until=lambda: not _unfinished_now(app.hf))
        check_all_succeeded(app.hf, acknowledged)
        assert overlaps(marks(tmp_path), killed=killed) == []


def _unfinished_now(hf: Holdfast) -> int:
    for _ in range(600):
        with contextlib.suppress(Exception):
            return unfinished(hf)
        time.sleep(0.1)
    raise AssertionError("the database did not come back")


@contextlib.contextmanager
def crashes(server: PostgresServer) -> Iterator[None]:
    """Crash the server and start it again, every twenty seconds."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(20):
            server.kill()
            server.start()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
