"""Reading event streams as a browser does."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx

STREAM = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Sent:
    """One event of a stream."""

    event: str
    id: str | None
    data: str

    @property
    def told(self) -> Any:
        return json.loads(self.data)


def sent(lines: Iterable[str]) -> Iterator[Sent]:
    """The events in the lines of a stream; comments are passed over."""
    fields: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
        elif not line and fields:
            if "data" in fields:
                yield Sent(fields.get("event", "message"), fields.get("id"), fields["data"])
            fields = {}


def whole(client: httpx.Client, path: str, *, after: str | None = None) -> list[Sent]:
    """Everything up to the end of a stream that has one; `after` is what a browser says it has."""
    headers = STREAM | ({"Last-Event-ID": after} if after is not None else {})
    with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code in (200, 204), answer.read()
        return list(sent(answer.iter_lines()))
