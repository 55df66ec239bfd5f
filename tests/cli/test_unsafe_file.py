"""Commands whose SQLite file is taken away end by themselves, with a reason; and `holdfast backup`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path

import httpx
import pytest
from tests.cli.conftest import Invoke, Shell, eventually
from tests.databases import locked_by, sqlite
from tests.listing import runs_of

from holdfast import Holdfast


@pytest.mark.contract("S3")
@pytest.mark.parametrize(
    "command",
    [("worker", "app:hf"), ("serve", "app:hf", "--port", "0"), ("serve", "app:hf", "--port", "0", "--worker")],
    ids=["worker", "serve", "serve with a worker"],
)
def test_a_worker_and_a_server_end_when_they_may_write_no_more(shell: Shell, command: tuple[str, ...]) -> None:
    file = shell.folder / "work.db"
    process = shell.start(*command)
    assert process.stdout is not None
    url = process.stdout.readline().strip() if command[0] == "serve" else None
    eventually(lambda: file.exists() and file.stat().st_ino in locked_by(process.pid))
    os.rename(f"{file}-wal", shell.folder / "gone-wal")
    if url is not None and "--worker" not in command:  # it notices when it next uses the database
        assert httpx.get(f"{url.partition('?')[0]}readyz").status_code == 503
    _, said = process.communicate(timeout=40)

    assert process.returncode == 6, said
    assert "store_unsafe: work.db is not safe to write: its -wal was removed" in said


def test_doctor_names_a_worker_that_writes_to_a_log_that_was_removed(shell: Shell) -> None:
    file = shell.folder / "work.db"
    process = shell.start("worker", "app:hf")
    eventually(lambda: "1 alive" in shell("doctor", "app:hf").stdout)
    assert "restart it" not in shell("doctor", "app:hf").stdout
    process.send_signal(signal.SIGSTOP)  # so that it does not notice by itself
    with contextlib.closing(sqlite.connect(file)) as outside:
        outside.execute("pragma wal_checkpoint(truncate)")
    os.remove(f"{file}-wal")
    said = shell("doctor", "app:hf")
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)

    assert "it writes to a work.db-wal that was removed; restart it" in " ".join((said.stdout + said.stderr).split())
    assert said.returncode == 1


def test_backup_copies_a_database_that_a_worker_uses(shell: Shell) -> None:
    worker = shell.start("worker", "app:hf")
    run = json.loads(
        shell("submit", "app:hf", "letters.greet", "name=Ada", "--follow", "--json").stdout.splitlines()[-1]
    )
    done = shell("backup", "app:hf", "a copy.db")
    again = shell("backup", "app:hf", "a copy.db")
    worker.terminate()

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("a copy.db: ")
    assert done.stdout.endswith("rows, checked\n")
    assert (again.returncode, again.stderr) == (1, "holdfast: backup_failed: a copy.db exists; name a new file\n")
    with Holdfast(f"sqlite:///{shell.folder / 'a copy.db'}") as copy:
        assert runs_of(copy)[0].state == "succeeded", run


def test_backup_says_in_json_what_it_made(inside: Invoke, tmp_path: Path) -> None:
    inside("migrate", "app:hf")
    done = inside("backup", "app:hf", "copy.db", "--json")
    told = json.loads(done.stdout)

    assert told["path"] == "copy.db"
    assert told["size"] == (tmp_path / "copy.db").stat().st_size
