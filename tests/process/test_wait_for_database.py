"""Commands and workers that start while the database is unavailable wait for it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.databases import sqlite
from tests.postgres import PostgresServer
from tests.process.test_worker_crashes import restart
from tests.python_process import PythonProcess
from tests.waiting import wait_for

from holdfast import Holdfast, StoreUnavailable
from holdfast.cli import exit_codes

APP = """
from holdfast import Holdfast

hf = Holdfast(poll_interval=0.1, lease=5)


@hf.job(name="greet")
def greet(name: str) -> str:
    return f"hello {name}"
"""
WAITING = "waiting for the database"
COMMANDS = {
    "worker": (["worker", "app:hf"], "queues: default"),
    "orchestrator": (["orchestrator", "app:hf"], "it executes no runs"),
    "serve": (["serve", "app:hf", "--worker", "--port", "0"], "executes runs"),
}


class Command:
    """A `holdfast` command as a process, and its standard error."""

    def __init__(self, folder: Path, *arguments: str, url: str, **settings: str) -> None:
        self._log = folder / f"{arguments[0]}.log"
        with self._log.open("wb") as log:
            self.process = PythonProcess(
                [sys.executable, "-m", "holdfast", *arguments],
                cwd=folder,
                env={**os.environ, "HOLDFAST_URL": url, **settings},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def log(self) -> str:
        return self._log.read_text()

    def wait_until_logged(self, text: str) -> None:
        wait_for(lambda: text in self.log() or self.process.poll() is not None, at_most=60, what=text)
        assert text in self.log(), self.log()

    def exit_code(self, number: int | None = None) -> int:
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Command]]:
    """Start a command, which is killed at the end of the test."""
    (tmp_path / "app.py").write_text(APP)
    started: list[Command] = []

    def start(*arguments: str, url: str, **settings: str) -> Command:
        started.append(Command(tmp_path, *arguments, url=url, **settings))
        return started[-1]

    yield start
    for command in started:
        command.process.kill()
        command.process.wait(timeout=20)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that has not been started yet."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-late-"))
    late = PostgresServer(folder, 18)
    try:
        late.initialise()
        yield late
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            late.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.contract("S3")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_starts_before_the_database_waits_for_it(
    start: Callable[..., Command], server: PostgresServer, name: str
) -> None:
    arguments, ready = COMMANDS[name]
    command = start(*arguments, url=server.url)
    command.wait_until_logged(WAITING)
    server.start("--fsync=off")
    command.wait_until_logged(ready)
    assert command.log().count(WAITING) <= 3, "it must not be logged at each attempt"
    if name != "orchestrator":
        with Holdfast(server.url) as hf:
            assert _greet(hf) == "hello Ada"
    assert command.exit_code(signal.SIGTERM) == exit_codes.OK


@pytest.mark.contract("S3")
def test_a_worker_that_starts_while_the_database_recovers_from_a_crash_waits_for_it(
    start: Callable[..., Command], server: PostgresServer
) -> None:
    server.start("--fsync=off")
    with Holdfast(server.url) as hf:
        hf.start()
        server.kill()
        command = start("worker", "app:hf", "--exclusive", "one", url=server.url)
        command.wait_until_logged(WAITING)
        restart(server)
        command.wait_until_logged("queues: default")
        assert _greet(hf) == "hello Ada"
    assert command.exit_code(signal.SIGTERM) == exit_codes.OK


@pytest.mark.contract("S4")
@pytest.mark.parametrize(("wait", "lines"), [("0", 0), ("0.5", 1)])
def test_after_the_wait_the_command_reports_that_the_database_is_unavailable(
    start: Callable[..., Command], server: PostgresServer, wait: str, lines: int
) -> None:
    commands = [start(*arguments, "--wait", wait, url=server.url) for arguments, _ in COMMANDS.values()]
    for command in commands:
        assert command.exit_code() == exit_codes.DATABASE
        assert command.log().count(WAITING) == lines
        assert "holdfast: store_unavailable: PostgreSQL is not available" in command.log()


@pytest.mark.contract("S4")
def test_a_command_does_not_wait_if_the_server_refuses_the_connection(
    start: Callable[..., Command], server: PostgresServer
) -> None:
    server.start("--fsync=off")
    with psycopg.connect(server.url, autocommit=True) as admin:
        found = admin.execute("show hba_file").fetchone()
        assert found is not None
        rules = Path(found[0])
        rules.write_text(
            "host all guarded 127.0.0.1/32 scram-sha-256\nhost all banned 127.0.0.1/32 reject\n" + rules.read_text()
        )
        admin.execute("select pg_reload_conf()")
        admin.execute("create role guarded login password 'right'")
        admin.execute("create role banned login")
    own = server.url.partition("postgres@")[2]
    refused = {
        f"postgresql://guarded:wrong@{own}": "password authentication failed",
        f"postgresql://guarded@{own}": "no password supplied",
        f"postgresql://nobody@{own}": 'role "nobody" does not exist',
        f"postgresql://banned@{own}": "pg_hba.conf rejects connection",
        server.url_of("nothing"): 'database "nothing" does not exist',
    }
    for url, reason in refused.items():
        command = start("worker", "app:hf", "--wait", "600", url=url, LC_ALL="C")
        assert command.exit_code() == exit_codes.DATABASE
        assert WAITING not in command.log()
        assert re.search(f"store_refused: PostgreSQL refuses the connection: .*{reason}", command.log())


@pytest.mark.contract("S5")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_waiting_command_stops_on_a_signal(start: Callable[..., Command], server: PostgresServer, name: str) -> None:
    command = start(*COMMANDS[name][0], "--wait", "600", url=server.url)
    command.wait_until_logged(WAITING)
    assert command.exit_code(signal.SIGTERM) == exit_codes.OK
    assert "stopped before the database could be reached" in command.log()


@pytest.mark.contract("P10")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_waits_for_a_locked_file(start: Callable[..., Command], sqlite_url: str, name: str) -> None:
    arguments, ready = COMMANDS[name]
    with contextlib.closing(sqlite.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)) as holder:
        holder.execute("begin exclusive")
        command = start(*arguments, url=sqlite_url, HOLDFAST_BUSY_TIMEOUT="0.1")
        command.wait_until_logged(WAITING)
        holder.execute("rollback")
    command.wait_until_logged(ready)
    assert command.exit_code(signal.SIGTERM) == exit_codes.OK


@pytest.mark.contract("S3")
def test_a_worker_inside_a_program_waits_only_if_start_is_given_a_wait(server: PostgresServer) -> None:
    with Holdfast(server.url, poll_interval=0.1, lease=5) as hf:

        @hf.job(name="greet")
        def greet(name: str) -> str:
            return f"hello {name}"

        with pytest.raises(StoreUnavailable):
            hf.worker().start()
        worker = hf.worker()
        starting = threading.Thread(target=worker.start, kwargs={"wait": 60})
        starting.start()
        server.start("--fsync=off")
        starting.join(timeout=60)
        assert worker.alive
        assert greet.submit("Ada").result(timeout=30) == "hello Ada"
        worker.stop()


def _greet(hf: Holdfast) -> object:
    @hf.job(name="greet")
    def greet(name: str) -> str:
        raise AssertionError("only submitted here")

    return greet.submit("Ada").result(timeout=60)
