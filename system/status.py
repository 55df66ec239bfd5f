"""Status of each application, in a file that the supervisor writes and the start page reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

State = Literal["starting", "up", "failed", "stopped"]


@dataclass(frozen=True, kw_only=True)
class ApplicationStatus:
    """The status of one application.

    reason    why it is not up; empty if it is
    site      the address of its site, and `page` the path to open there
    database  the URL of the database with its runs
    """

    name: str
    title: str
    shows: str
    state: State
    reason: str
    site: str
    page: str
    database: str
    restarts: int


def write(file: Path, statuses: Sequence[ApplicationStatus]) -> None:
    new = file.with_suffix(".new")
    new.write_text(json.dumps([asdict(status) for status in statuses]), "utf-8")
    new.replace(file)


def read(file: Path) -> list[ApplicationStatus]:
    """The statuses last written; none before the first write."""
    try:
        return [ApplicationStatus(**row) for row in json.loads(file.read_text("utf-8"))]
    except FileNotFoundError:
        return []
