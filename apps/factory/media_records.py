"""Media records: reads and writes the factory's tables from the process of a segment.

It uses four statements and the driver that Holdfast has already loaded, because importing SQLAlchemy would often take
longer than making a segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.shared.plain_driver import PlainConnection
from holdfast import RunInfo

FIND_RUN = "select run_id from copies where key = :key order by number desc limit 1"
COUNT_PRODUCT = """
insert into products (key, stage, version, times)
values (:key, :stage, :version, 1)
on conflict (key) do update set times = products.times + :made
"""
ADD_COPY = """
insert into copies (key, run_id, job_id, number)
select cast(:key as varchar(64)), :run_id, :job_id, coalesce(max(number), 0) + 1
from copies
where key = cast(:key as varchar(64))
on conflict (key, run_id) do update set number = excluded.number
"""
GET_PICTURE = "select content from pictures where sha256 = :sha256 limit 1"
TIMEOUT = 30.0


class MediaRecords:
    """The tables `products`, `copies` and `pictures` in the database at `HOLDFAST_URL`."""

    def __init__(self, url: str) -> None:
        self._url = url

    def find_run(self, key: str) -> str | None:
        """Return the newest run that has the files of this key, if one is known."""
        row = self._run(FIND_RUN, {"key": key})
        return None if row is None else str(row[0])

    def add(self, key: str, run: RunInfo, *, made: bool) -> None:
        """Record that this run has the files of this key. Later runs copy from it, because it is the newest."""
        self._run(COUNT_PRODUCT, {"key": key, "stage": run.stage, "version": run.stage_version, "made": int(made)})
        self._run(ADD_COPY, {"key": key, "run_id": run.id, "job_id": run.parent_id})

    def picture(self, digest: str) -> bytes | None:
        row = self._run(GET_PICTURE, {"sha256": digest})
        return None if row is None else bytes(row[0])

    def _run(self, statement: str, values: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """Execute a statement in its own transaction, and return its first row."""
        with PlainConnection(self._url, timeout=TIMEOUT) as connection:
            return connection.execute(statement, values)
