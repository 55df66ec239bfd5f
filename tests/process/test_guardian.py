"""The guardian keeps leases while a job holds the interpreter lock; an attempt ends before its run is taken over."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.process.support import PROGRAMS, WorkerProcess, descendants, gone, is_a_guardian, marks, overlaps
from tests.python_process import PythonProcess
from tests.waiting import wait_for

LEASE = 6.0
PATIENCE = 120.0

pytestmark = pytest.mark.timeout(300)

Start = Callable[..., WorkerProcess]


class Command:
    """A `holdfast worker` process."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.log = folder / f"worker-{len(list(folder.glob('worker-*')))}.log"
        with self.log.open("wb") as log:
            self.process = PythonProcess(
                [sys.executable, "-m", "holdfast", "worker", "blocking_jobs:hf", "-c", "8"],
                cwd=PROGRAMS,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stderr=log,
            )
        self.wait_until("queues: default")

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_until(self, text: str, times: int = 1) -> None:
        try:
            wait_for(lambda: self.log.read_text().count(text) >= times, at_most=PATIENCE, what=text)
        except AssertionError as error:
            error.add_note(self.log.read_text())
            raise

    def end(self) -> None:
        for number in (signal.SIGKILL, signal.SIGCONT):
            self.process.send_signal(number)
        self.process.wait(timeout=60)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    started: list[Command] = []

    def start(**environment: str) -> Command:
        started.append(Command(tmp_path, **environment))
        return started[-1]

    yield start
    for one in started:
        one.end()


def guardian_of(pid: int) -> int | None:
    return next((child for child in descendants(pid) if is_a_guardian(child)), None)


def started(folder: Path) -> set[str]:
    return {mark.run_id for mark in marks(folder) if mark.what == "start"}


@pytest.mark.contract("S3", "L4")
def test_a_job_that_holds_the_interpreter_lock_longer_than_a_lease_runs_once(
    load: Callable[..., Any], local_url: str, tmp_path: Path, command: Callable[..., Command]
) -> None:
    app = load("blocking_jobs", local_url)
    command()
    seconds = 2.5 * LEASE
    runs = [job.submit(seconds) for job in (app.in_thread, app.in_loop, app.in_process)]
    wait_for(lambda: len(started(tmp_path)) == 3, at_most=PATIENCE)
    runs.append(app.hold.submit(int(seconds)))
    wait_for(lambda: len(started(tmp_path)) == 4, at_most=PATIENCE)
    command()  # a healthy worker, which takes over runs whose leases are not renewed

    assert [run.result(timeout=PATIENCE) for run in runs] == [1, 1, 1, 1]
    assert [run.refresh().snapshot.takeovers for run in runs] == [0, 0, 0, 0]
    assert overlaps(marks(tmp_path), killed={}) == []


@pytest.mark.contract("S3", "L5")
def test_without_a_guardian_a_blocked_worker_keeps_its_results_if_no_other_took_over(
    load: Callable[..., Any], local_url: str, tmp_path: Path, command: Callable[..., Command]
) -> None:
    app = load("blocking_jobs", local_url, TEST_LEASE="2", TEST_GUARDIAN="0")
    worker = command()
    neighbour = app.in_thread.submit(7)
    wait_for(lambda: len(started(tmp_path)) == 1, at_most=PATIENCE)
    holder = app.hold.submit(5)

    assert holder.result(timeout=PATIENCE) == 1
    assert neighbour.result(timeout=PATIENCE) == 1
    assert guardian_of(worker.pid) is None


class Proxy:
    """A TCP proxy of a server; while it is shut, it accepts connections but forwards nothing."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._is_open = threading.Event()
        self._is_open.set()
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        self._is_open.clear()

    def open(self) -> None:
        self._is_open.set()

    def close(self) -> None:
        self._is_open.set()
        self._listening.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(ours,), daemon=True).start()

    def _serve(self, ours: socket.socket) -> None:
        self._is_open.wait()
        with ours, contextlib.suppress(OSError), socket.create_connection(self._target) as theirs:
            back = threading.Thread(target=self._pass_on, args=(theirs, ours), daemon=True)
            back.start()
            self._pass_on(ours, theirs)
            back.join()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                self._is_open.wait()
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.contract("S3", "L7")
def test_a_disconnected_worker_restarts_before_another_worker_takes_over_its_run(
    load: Callable[..., Any], postgres_url: str, tmp_path: Path, command: Callable[..., Command]
) -> None:
    app = load("blocking_jobs", postgres_url, TEST_LEASE="8")
    server = psycopg.conninfo.conninfo_to_dict(postgres_url)
    proxy = Proxy(str(server["host"]), int(str(server["port"])))
    through = psycopg.conninfo.make_conninfo(postgres_url, host="127.0.0.1", port=proxy.port)
    with contextlib.closing(proxy):
        cut_off = command(HOLDFAST_URL=_url(through))
        run = app.never_stops.submit()
        wait_for(lambda: started(tmp_path), at_most=PATIENCE)
        healthy = command()

        proxy.shut()
        assert run.result(timeout=PATIENCE) >= 2
        proxy.open()

        first, last = (next(m for m in marks(tmp_path) if m.claim == 1), _last_of(tmp_path, claim=1))
        assert first.pid == last.pid == cut_off.pid
        assert last.at < next(mark.at for mark in marks(tmp_path) if mark.claim == 2)
        # It restarted in the same process, without its old threads, and works again once it reaches the database.
        cut_off.wait_until("queues: default", times=2)
        assert cut_off.process.poll() is None
        healthy.end()
        assert app.in_thread.submit(0).result(timeout=PATIENCE) == 1


def _url(conninfo: str) -> str:
    parts = psycopg.conninfo.conninfo_to_dict(conninfo)
    options = "&".join(f"{name}={value}" for name, value in parts.items() if name not in ("dbname",))
    return f"postgresql:///{parts['dbname']}?{options}"


def _last_of(folder: Path, *, claim: int) -> Any:
    return [mark for mark in marks(folder) if mark.claim == claim][-1]


@pytest.mark.contract("S3", "L7")
def test_a_suspended_worker_is_killed_before_another_worker_takes_over_its_run(
    load: Callable[..., Any], local_url: str, tmp_path: Path, command: Callable[..., Command]
) -> None:
    app = load("blocking_jobs", local_url, TEST_LEASE="3")
    stopped = command()
    run = app.never_stops.submit()
    wait_for(lambda: started(tmp_path), at_most=PATIENCE)
    idle = command()
    idle.process.send_signal(signal.SIGSTOP)
    stopped.process.send_signal(signal.SIGSTOP)
    command()

    assert run.result(timeout=PATIENCE) == 2
    assert stopped.process.wait(timeout=PATIENCE) == -signal.SIGKILL
    assert "could not be renewed in time" in stopped.log.read_text()
    assert overlaps(marks(tmp_path), killed={stopped.pid: _last_of(tmp_path, claim=1).at}) == []
    # A worker without leases is not killed.
    assert idle.process.poll() is None


@pytest.mark.contract("P7", "S3")
def test_a_worker_whose_job_holds_the_interpreter_lock_past_its_timeout_is_killed(
    load: Callable[..., Any], local_url: str, tmp_path: Path, command: Callable[..., Command]
) -> None:
    app = load("blocking_jobs", local_url, TEST_LEASE="3")
    stuck = command()
    neighbour = app.never_stops.submit()
    wait_for(lambda: started(tmp_path), at_most=PATIENCE)
    run = app.hold_past_the_timeout.submit()
    wait_for(lambda: len(started(tmp_path)) == 2, at_most=PATIENCE)
    command()

    assert neighbour.result(timeout=PATIENCE) == 2
    wait_for(lambda: run.refresh().snapshot.ended, at_most=PATIENCE)
    assert run.state == "timed_out"
    assert stuck.process.wait(timeout=PATIENCE) == -signal.SIGKILL
    assert "a run timed out" in stuck.log.read_text()


@pytest.mark.contract("L7")
def test_a_worker_inside_an_application_is_never_killed_by_its_guardian(
    load: Callable[..., Any], sqlite_url: str, tmp_path: Path, start_worker: Start
) -> None:
    app = load("blocking_jobs", sqlite_url, TEST_LEASE="2")
    host = start_worker("blocking_jobs").ready()
    run = app.never_stops.submit()
    wait_for(lambda: started(tmp_path), at_most=PATIENCE)
    host.signal(signal.SIGSTOP)
    start_worker("blocking_jobs").ready()

    assert run.result(timeout=PATIENCE) == 2
    host.signal(signal.SIGCONT)
    assert host.process.poll() is None
    assert app.in_thread.submit(0).result(timeout=PATIENCE) == 1


@pytest.mark.contract("S5")
def test_a_guardian_ends_with_its_worker_and_is_replaced_when_it_dies(
    load: Callable[..., Any], sqlite_url: str, command: Callable[..., Command]
) -> None:
    load("blocking_jobs", sqlite_url, TEST_LEASE="2")
    for number in (signal.SIGTERM, signal.SIGKILL):
        worker = command()
        first = wait_for(lambda: guardian_of(worker.pid), at_most=PATIENCE)  # noqa: B023
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: gone(first), at_most=PATIENCE)  # noqa: B023
        second = wait_for(lambda: guardian_of(worker.pid), at_most=PATIENCE)  # noqa: B023

        worker.process.send_signal(number)
        worker.process.wait(timeout=60)
        wait_for(lambda: gone(second), at_most=PATIENCE)  # noqa: B023


def test_an_idle_guardian_needs_little_memory(
    load: Callable[..., Any], postgres_url: str, command: Callable[..., Command]
) -> None:
    load("blocking_jobs", postgres_url)
    guardian = wait_for(lambda: guardian_of(worker.pid), at_most=PATIENCE) if (worker := command()) else 0
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{guardian}/status").read_text().splitlines())

    assert int(fields["VmRSS"].split()[0]) < 25 * 1024
    assert int(fields["Threads"]) == 1
