"""Parser processes: parsing in processes of its own, because there are documents that keep a parser busy for hours.

A reader is told a document and answers with its articles; after `seconds` of work on one, or with too much memory, the
system ends it, and another takes its place. It knows no database and no secret, and ends when its input does.

    python -m apps.dailybrief.feeds.parser_processes SECONDS      (lines of JSON come in, and go out)
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

from pydantic import Base64Bytes, BaseModel, TypeAdapter

from apps.dailybrief.feeds.parse import BadFeed, Parsed, parse
from apps.dailybrief.feeds.stopped import Stopped

ROOT = Path(__file__).parents[3]
MOST_MEMORY = 1_500_000_000


class Order(BaseModel):
    """What a reader is told."""

    body: Base64Bytes
    url: str
    content_type: str
    at: datetime
    at_most: int
    feed: str


class Fault(BaseModel):
    """That the document is no feed."""

    code: str
    message: str


ANSWER: TypeAdapter[Parsed | Fault] = TypeAdapter(Parsed | Fault)


class Readers:
    """Up to `count` processes that read; started when there is work for them."""

    def __init__(self, count: int, *, seconds: float) -> None:
        self._seconds = seconds
        self._idle: queue.LifoQueue[_Reader | None] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._alive: set[_Reader] = set()
        self._closed = False
        for _ in range(count):
            self._idle.put(None)

    def parse(self, body: bytes, *, url: str, content_type: str, at: datetime, at_most: int, feed: str = "") -> Parsed:
        """As `parse.parse`, elsewhere; BadFeed also if it takes too much."""
        told = Order.model_construct(body=body, url=url, content_type=content_type, at=at, at_most=at_most, feed=feed)
        line = self._ask(told.model_dump_json().encode() + b"\n")
        if not line.endswith(b"\n"):
            raise BadFeed("too_complex", "reading it takes more time or memory than a feed may")
        answer = ANSWER.validate_json(line)
        if isinstance(answer, Fault):
            raise BadFeed(answer.code, answer.message)
        return answer

    def close(self) -> None:
        """End all readers, also those at work."""
        with self._lock:
            self._closed = True
            for reader in self._alive:
                reader.end()
            self._alive.clear()

    def _ask(self, told: bytes) -> bytes:
        """What a reader answers; less than a line if it did not survive, and then its place is free."""
        reader = self._idle.get()
        try:
            if reader is None:
                reader = self._start()
            line = reader.ask(told)
            if not line.endswith(b"\n"):
                self._bury(reader)
                reader = None
            return line
        finally:
            self._idle.put(reader)

    def _start(self) -> _Reader:
        with self._lock:
            if self._closed:
                raise Stopped
            reader = _Reader(self._seconds)
            self._alive.add(reader)
            return reader

    def _bury(self, reader: _Reader) -> None:
        with self._lock:
            if self._closed:
                raise Stopped
            self._alive.remove(reader)
        reader.end()


class _Reader:
    def __init__(self, seconds: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
            start_new_session=True,
        )

    def ask(self, told: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(told)
            self._process.stdin.flush()
            return self._process.stdout.readline()
        except (OSError, ValueError):  # it has ended, or we have closed it
            return b""

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _main(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # work, not waiting; the signal ends the process
        answer = _answer(Order.model_validate_json(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(ANSWER.dump_json(answer) + b"\n")
        sys.stdout.buffer.flush()


def _answer(told: Order) -> Parsed | Fault:
    try:
        return parse(
            told.body,
            url=told.url,
            content_type=told.content_type,
            at=told.at,
            at_most=told.at_most,
            feed=told.feed,
        )
    except BadFeed as error:
        return Fault(code=error.code, message=str(error))
    except Exception as error:
        # Whatever feedparser stumbles over: it is the document's fault, not that of the next one.
        return Fault(code="unreadable", message=f"it can't be read: {type(error).__name__}")


if __name__ == "__main__":
    _main(float(sys.argv[1]))
