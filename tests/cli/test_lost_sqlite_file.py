"""Commands exit with an error when a file of their SQLite database is removed; and `holdfast backup`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import httpx
import pytest
from tests.cli.conftest import Invoke, Shell
from tests.databases import locked_by, sqlite
from tests.listing import runs_of
from tests.waiting import wait_for

from holdfast import Holdfast


@pytest.mark.contract("S3")
@pytest.mark.parametrize(
    "command",
    [("worker", "app:hf"), ("serve", "app:hf", "--port", "0"), ("serve", "app:hf", "--port", "0", "--worker")],
    ids=["worker", "serve", "serve with a worker"],
)
def test_a_worker_and_a_server_exit_when_they_can_no_longer_write_safely(
    shell: Shell, command: tuple[str, ...]
) -> None:
    file = shell.folder / "work.db"
    process = shell.start(*command)
    assert process.stdout is not None
    url = process.stdout.readline().strip() if command[0] == "serve" else None
    log = shell.folder / "work.db-wal"
    wait_for(lambda: log.exists() and file.stat().st_ino in locked_by(process.pid))
    log.rename(shell.folder / "gone-wal")
    if url is not None and "--worker" not in command:  # a server without a worker notices it at its next query
        assert httpx.get(f"{url.partition('?')[0]}readyz").status_code == 503
    _, stderr = process.communicate(timeout=40)

    assert process.returncode == 6, stderr
    assert "store_unsafe: work.db is not safe to write: its -wal was removed" in stderr


def test_doctor_names_a_worker_that_writes_to_a_deleted_wal_file(shell: Shell, inside: Invoke) -> None:
    file = shell.folder / "work.db"
    process = shell.start("worker", "app:hf")
    wait_for(lambda: file.exists() and "1 alive" in inside("doctor", "app:hf").stdout)
    assert "restart it" not in inside("doctor", "app:hf").stdout
    process.send_signal(signal.SIGSTOP)  # so that the worker does not notice it first
    with contextlib.closing(sqlite.connect(file)) as outside:
        outside.execute("pragma wal_checkpoint(truncate)")
    os.remove(f"{file}-wal")
    doctor = shell("doctor", "app:hf")
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)

    assert "it writes to a work.db-wal that was removed; restart it" in " ".join(
        (doctor.stdout + doctor.stderr).split()
    )
    assert doctor.returncode == 1


def test_backup_copies_a_database_that_a_worker_uses(shell: Shell, inside: Invoke) -> None:
    worker = shell.start("worker", "app:hf")
    followed = inside("submit", "app:hf", "letters.greet", "name=Ada", "--follow", "--json")
    run = json.loads(followed.stdout.splitlines()[-1])
    done = inside("backup", "app:hf", "a copy.db")
    again = inside("backup", "app:hf", "a copy.db")
    worker.terminate()

    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("a copy.db: ")
    assert done.stdout.endswith("rows, checked\n")
    assert (again.exit_code, again.stderr) == (1, "holdfast: backup_failed: a copy.db exists; name a new file\n")
    with Holdfast(f"sqlite:///{shell.folder / 'a copy.db'}") as copy:
        assert runs_of(copy)[0].state == "succeeded", run


def test_backup_describes_its_copy_in_json(inside: Invoke, tmp_path: Path) -> None:
    inside("migrate", "app:hf")
    done = inside("backup", "app:hf", "copy.db", "--json")
    document = json.loads(done.stdout)

    assert document["path"] == "copy.db"
    assert document["size"] == (tmp_path / "copy.db").stat().st_size
