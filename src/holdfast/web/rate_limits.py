"""Limits on the rate of requests and the size of their bodies, in bounded memory."""

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
STALLED = 60.0  # seconds without data after which an incomplete body is refused


class Buckets:
    """A token bucket for each name, refilled over time. The least recently used names are forgotten."""

    def __init__(self, elapsed: Callable[[], float], *, size: float, per_second: float) -> None:
        self._elapsed, self._size, self._per_second = elapsed, size, per_second
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Take a token and return 0, or return how many seconds to wait if the bucket is empty."""
        wait = self.wait(name)
        if wait == 0:
            left, at = self._left[name]
            self._left[name] = left - 1, at
        return wait

    def wait(self, name: str) -> float:
        """Return how many seconds until there is a token, without taking it."""
        now = self._elapsed()
        left, at = self._left.pop(name, (self._size, now))
        left = min(self._size, left + (now - at) * self._per_second)
        self._left[name] = left, now
        while len(self._left) > REMEMBERED:
            self._left.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / self._per_second


class Recent:
    """Remembers names for a limited time."""

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
    """Return the problem for a client that has reached a rate limit."""
    seconds = math.ceil(wait)
    detail = f"{what}; try again in {seconds} s"
    return Problem("too_many_requests", detail, status=429, headers={"Retry-After": str(seconds)})


def bounded(request: Request, most: int) -> Request:
    """Return the request with a limit on the size of its body."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > most:
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
    """The client has stopped sending an incomplete body, but keeps the connection open."""

    problem = "upload_broken"

    def __init__(self) -> None:
        super().__init__(408, f"no data received for {STALLED:.0f} s", {"Connection": "close"})


class TooMuch(HTTPException):
    """A body is too large. An HTTPException, because FastAPI passes these on while it reads a body."""

    problem = "body_too_large"

    def __init__(self, most: int) -> None:
        # Close the connection, because the rest of the body is still being sent.
        super().__init__(413, f"the request body may have at most {most:,} bytes", {"Connection": "close"})
