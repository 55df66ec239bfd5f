"""Limits: how often someone may ask, and how much they may send. What is remembered of them is bounded."""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Callable

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import Message

from holdfast.web.problems import Problem

REMEMBERED = 10_000
STALLED = 60.0  # seconds without a byte of a body that is not yet whole


class Buckets:
    """For each name a bucket of so many drops that fills again over time; who was not seen for long is forgotten."""

    def __init__(self, elapsed: Callable[[], float], *, size: float, per_second: float) -> None:
        self._elapsed, self._size, self._per_second = elapsed, size, per_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Take a drop; how many seconds to wait if there is none, else 0."""
        wait = self.wait(name)
        if wait == 0:
            left, at = self._left[name]
            self._left[name] = left - 1, at
        return wait

    def wait(self, name: str) -> float:
        """How long until there is a drop, which is not taken."""
        now = self._elapsed()
        left, at = self._left.pop(name, (self._size, now))
        left = min(self._size, left + (now - at) * self._per_second)
        self._left[name] = left, now
        while len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / self._per_second


class Recent:
    """Names that were added not long ago."""

    def __init__(self, elapsed: Callable[[], float], *, lasts: float) -> None:
        self._elapsed, self._lasts = elapsed, lasts
        self._until: OrderedDict[str, float] = OrderedDict()

    def add(self, name: str) -> None:
        self._until[name] = self._elapsed() + self._lasts
        self._until.move_to_end(name)
        while len(self._until) > REMEMBERED:
            self._until.popitem(last=False)

    def __contains__(self, name: str) -> bool:
        return self._until.get(name, 0.0) > self._elapsed()


def too_many(what: str, wait: float) -> Problem:
    """The answer to who asked too often."""
    return Problem(
        "too_many_requests", f"{what}; wait a moment", status=429, headers={"Retry-After": str(math.ceil(wait))}
    )


def bounded(request: Request, most: int) -> Request:
    """The request, of whose body no more is read than this."""
    said = request.headers.get("content-length", "")
    if said.isdigit() and int(said) > most:
        raise TooMuch(most)
    received = 0

    async def receive() -> Message:
        nonlocal received
        try:
            async with asyncio.timeout(STALLED):
                message = await request.receive()
        except TimeoutError:
            raise Stalled from None
        received += len(message.get("body", b""))
        if received > most:
            raise TooMuch(most)
        return message

    return Request(request.scope, receive)


class Stalled(HTTPException):
    """A body was begun and does not go on; who sends it holds a connection and gives nothing."""

    problem = "upload_broken"

    def __init__(self) -> None:
        super().__init__(408, f"nothing came for {STALLED:.0f} s", {"Connection": "close"})


class TooMuch(HTTPException):
    """A body is larger than it may be; FastAPI passes this one on from where it reads the body."""

    problem = "body_too_large"

    def __init__(self, most: int) -> None:
        # The rest of the body is still under way: who sends it is told, and not listened to any longer.
        super().__init__(413, f"a request's body may have at most {most:,} bytes here", {"Connection": "close"})
