"""External clients of SQLite files: `python sqlite_clients.py FOLDER` runs until SIGTERM.

It uses the SQLite of the standard library and, for backups, the `sqlite3` command if it is installed. It visits the
databases below the folder in turn: it reads a table, writes to a table of its own and sometimes makes a backup. At the
end it prints the number of visits.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

COMMAND = shutil.which("sqlite3")
EVERY = 10  # visits per backup
PAUSE = 0.02  # seconds between visits, which leave the CPU to the processes under test


class Stopped(Exception):
    pass


def main(folder: Path) -> int:
    def stop(number: int, frame: object) -> None:
        raise Stopped

    signal.signal(signal.SIGTERM, stop)
    visits = 0
    print("ready", flush=True)
    with contextlib.suppress(Stopped), tempfile.TemporaryDirectory() as copies:
        for path in forever(folder):
            visit(path)
            visits += 1
            if visits % EVERY == 0:
                back_up(path, Path(copies) / "copy.db")
            time.sleep(PAUSE)
    print(visits, flush=True)
    return 0


def forever(folder: Path) -> Iterator[Path]:
    while True:
        found = [Path(below) / name for below, _, names in os.walk(folder) for name in names if name.endswith(".db")]
        yield from sorted(found)


def visit(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as connection:
        try:
            connection.execute("select count(*) from holdfast_runs").fetchone()
        except sqlite3.OperationalError:
            return  # not created yet, or not a Holdfast database
        connection.execute("create table if not exists visits (number integer)")
        connection.execute("insert into visits values (1)")


def back_up(path: Path, copy: Path) -> None:
    if COMMAND is None:
        with contextlib.closing(sqlite3.connect(path, timeout=20)) as source:
            with contextlib.closing(sqlite3.connect(copy)) as target:
                source.backup(target)
    else:
        subprocess.run([COMMAND, str(path), ".timeout 20000", f".backup {copy}"], check=True)
    with contextlib.closing(sqlite3.connect(copy)) as found:
        assert found.execute("pragma quick_check").fetchall() == [("ok",)], path
    copy.unlink()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
