"""Media records: what the process of one segment reads from the factory's tables and writes there.

Four statements, by the driver that the engine has loaded: to import more would take longer than many a segment.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from holdfast import RunInfo

ASK = "select run_id from copies where key = :key order by number desc limit 1"
NOTE = """
insert into products (key, stage, version, times)
values (:key, :stage, :version, 1)
on conflict (key) do update set times = products.times + :made
"""
KEEP = """
insert into copies (key, run_id, job_id, number)
select cast(:key as varchar(64)), :run_id, :job_id, coalesce(max(number), 0) + 1
from copies
where key = cast(:key as varchar(64))
on conflict (key, run_id) do update set number = excluded.number
"""
PICTURE = "select content from pictures where sha256 = :sha256 limit 1"
PATIENCE = 30.0


class MediaRecords:
    """The tables `products`, `copies` and `pictures` behind `HOLDFAST_URL`."""

    def __init__(self, url: str) -> None:
        scheme, _, self._rest = url.partition("://")
        self._sqlite = scheme.startswith("sqlite")

    def holder(self, key: str) -> str | None:
        """Which run has what was made of this input, as far as is known."""
        found = self._run(ASK, {"key": key})
        return None if found is None else str(found[0])

    def note(self, key: str, run: RunInfo, *, made: bool) -> None:
        """Write down that this run has it: artifacts go with their run, and this one is the newest."""
        self._run(NOTE, {"key": key, "stage": run.stage, "version": run.stage_version, "made": int(made)})
        self._run(KEEP, {"key": key, "run_id": run.id, "job_id": run.parent_id})

    def picture(self, digest: str) -> bytes | None:
        found = self._run(PICTURE, {"sha256": digest})
        return None if found is None else bytes(found[0])

    def _run(self, statement: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """The first row that a statement gives. Each is a transaction of its own."""
        with self._connection() as connection:
            if not self._sqlite:
                statement = re.sub(r":(\w+)", r"%(\1)s", statement)
            done = connection.execute(statement, values)
            found: tuple[Any, ...] | None = done.fetchone() if done.description else None
            return found

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        if self._sqlite:
            import sqlite3

            path = unquote(self._rest.removeprefix("/").partition("?")[0])
            opened: Any = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
            opened.execute("pragma wal_autocheckpoint = 0")  # Holdfast checkpoints, when no one writes
        else:
            import psycopg

            opened = psycopg.connect(f"postgresql://{self._rest}", autocommit=True)
        with contextlib.closing(opened) as connection:
            yield connection
