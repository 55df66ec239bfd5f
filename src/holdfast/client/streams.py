"""Streams: events as they happen. A stream reconnects when its connection breaks, and continues where it was."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

from holdfast.client import decoding
from holdfast.client.transport import Wire
from holdfast.support.errors import ServerUnavailable
from holdfast.values.events import Event

TRIES = 5  # how many failed connections in a row end the stream
PAUSE = 0.5


def follow(wire: Wire, path: tuple[str, ...], *, after: str | None, **query: Any) -> Iterator[tuple[str, Event]]:
    """Yield events with their cursors until the server ends the stream."""
    tries = 0
    while True:
        try:
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after is not None else {})
            with wire.stream(*path, headers=headers, **query) as response:
                if response.status_code == 204:
                    return
                for name, data in frames(response.iter_lines()):
                    tries = 0
                    if name == "end":
                        return
                    if name == "message":
                        event = json.loads(data)
                        after = event["cursor"]
                        yield event["cursor"], decoding.value(Event, event)
        except ServerUnavailable:
            tries += 1
            if tries == TRIES:
                raise
        threading.Event().wait(PAUSE * tries)


def frames(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """Yield (event, data) for each frame of server-sent events; frames without data are skipped."""
    name = "message"
    data: list[str] = []
    for line in lines:
        if not line:
            if data:
                yield name, "\n".join(data)
            name, data = "message", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "event":
                name = value
            case "data":
                data.append(value)
