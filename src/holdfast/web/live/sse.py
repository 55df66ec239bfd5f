"""Server-sent events: how they look on the wire, and a response that no stuck reader can hold open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager

from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from holdfast.values.events import Event
from holdfast.web.api.shapes import Event as Shown
from holdfast.web.problems import Problem, answer_to

STUCK = 60.0  # seconds for which a reader may take nothing before it is let go
STILL_HERE = b": still here\n\n"
RETRY = b"retry: 2000\n\n"


def frame(data: str, *, event: str | None = None, id: str | None = None) -> bytes:
    """One event on the wire; `data` and `id` are one line each."""
    lines = [f"id: {id}"] if id is not None else []
    lines += [f"event: {event}"] if event is not None else []
    return "\n".join([*lines, f"data: {data}", "", ""]).encode()


def told(cursor: str, event: Event) -> bytes:
    """An event of a run, as the API shows it; in ASCII, so that nothing in it can end a line."""
    return frame(Shown.of(event, cursor).model_dump_json(ensure_ascii=True), id=cursor)


class Stream(StreamingResponse):
    """A response that goes on until its events end, its reader leaves or takes nothing, or the server stops."""

    def __init__(self, frames: AsyncIterator[bytes], place: Callable[[Scope], AbstractContextManager[None]]) -> None:
        # A proxy that gathers an answer before it passes it on would hold events back.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(frames, media_type="text/event-stream", headers=headers)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def patient(message: Message) -> None:
            async with asyncio.timeout(STUCK):
                await send(message)

        try:
            with self._place(scope):
                await super().__call__(scope, receive, patient)
        except Problem as problem:
            response = answer_to(problem)
            assert response is not None
            await response(scope, receive, send)
        except TimeoutError:
            pass  # it reads nothing: whoever it is may come again and go on where it was
