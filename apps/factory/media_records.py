"""Media records: what the process of one segment reads from the factory's tables and writes there.

Four statements, by the driver that the engine has loaded: to import more would take longer than many a segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apps.shared.plain_driver import PlainConnection
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
TIMEOUT = 30.0


class MediaRecords:
    """The tables `products`, `copies` and `pictures` behind `HOLDFAST_URL`."""

    def __init__(self, url: str) -> None:
        self._url = url

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
        with PlainConnection(self._url, timeout=TIMEOUT) as connection:
            return connection.execute(statement, values)
