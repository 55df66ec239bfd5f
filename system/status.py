"""Status of each application, in a file: the supervisor writes it, the start page reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

State = Literal["starting", "up", "failed", "stopped"]


@dataclass(frozen=True, kw_only=True)
class ApplicationStatus:
    """One application; `page` of `site` is where to look, `database` has its runs, `reason` says why it is not up."""

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
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps([asdict(status) for status in statuses]), "utf-8")
    beside.replace(file)


def read(file: Path) -> list[ApplicationStatus]:
    """What was last written; nothing, if there is nothing yet."""
    try:
        return [ApplicationStatus(**row) for row in json.loads(file.read_text("utf-8"))]
    except FileNotFoundError:
        return []
