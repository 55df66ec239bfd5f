"""Read event streams as a browser does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

STREAM = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class StreamEvent:
    """One event of a stream."""

    event: str
    id: str | None
    data: str

    @property
    def json(self) -> Any:
        return json.loads(self.data)


def read_events(lines: Iterable[str]) -> Iterator[StreamEvent]:
    """Parse the lines of a stream into events, without its comments."""
    fields: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            if "data" in fields:
                yield StreamEvent(fields.get("event", "message"), fields.get("id"), fields["data"])
            fields = {}


def read_stream(client: httpx.Client, path: str, *, after: str | None = None) -> list[StreamEvent]:
    """Read a stream to its end; `after` is sent as the id of the last event received."""
    headers = STREAM | ({"Last-Event-ID": after} if after is not None else {})
    with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code in (200, 204), answer.read()
        return list(read_events(answer.iter_lines()))
