"""Server-sent events: their wire format, and a response that a stuck client can't hold open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager

from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from holdfast.values.events import Event
from holdfast.web.api.shapes import Event as Shown
from holdfast.web.problems import Problem, answer_to

STUCK = 60.0  # seconds without reading after which a client is disconnected
STILL_HERE = b": still here\n\n"
RETRY = b"retry: 2000\n\n"


def frame(data: str, *, event: str | None = None, id: str | None = None) -> bytes:
    """Return one event in wire format; `data` and `id` are one line each."""
    lines = [f"id: {id}"] if id is not None else []
    lines += [f"event: {event}"] if event is not None else []
    return "\n".join([*lines, f"data: {data}", "", ""]).encode()


def event_frame(cursor: str, event: Event) -> bytes:
    """Return an event of a run in wire format; in ASCII, so that it contains no line break."""
    return frame(Shown.of(event, cursor).model_dump_json(ensure_ascii=True), id=cursor)


class Stream(StreamingResponse):
    """A response that lasts until its events end, the client disconnects or stops reading, or the server stops."""

    def __init__(self, frames: AsyncIterator[bytes], admit: Callable[[Scope], AbstractContextManager[None]]) -> None:
        # A proxy that buffers responses would delay events.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(frames, media_type="text/event-stream", headers=headers)
        self._admit = admit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def patient(message: Message) -> None:
            async with asyncio.timeout(STUCK):
                await send(message)

        try:
            with self._admit(scope):
                await super().__call__(scope, receive, patient)
        except Problem as problem:
            response = answer_to(problem)
            assert response is not None
            await response(scope, receive, send)
        except TimeoutError:
            pass  # the client has stopped reading; it can reconnect and continue from its last event
