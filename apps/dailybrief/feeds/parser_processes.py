"""Parser processes: parse feeds in separate processes, because some documents keep a parser busy for hours.

A process receives a document and answers with its articles. If it uses more than `seconds` of CPU time for one
document, or too much memory, the system kills it, and the pool starts another. It has no access to the database or to
secrets, and ends when its input is closed.

    python -m apps.dailybrief.feeds.parser_processes SECONDS      (reads and writes lines of JSON)
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
MAX_MEMORY = 1_500_000_000


class ParseRequest(BaseModel):
    """The document that a parser process receives."""

    body: Base64Bytes
    url: str
    content_type: str
    at: datetime
    at_most: int
    feed: str


class ParseError(BaseModel):
    """The answer if the document is not a feed."""

    code: str
    message: str


ANSWER: TypeAdapter[Parsed | ParseError] = TypeAdapter(Parsed | ParseError)


class ParserPool:
    """Up to `count` parser processes, started on demand."""

    def __init__(self, count: int, *, seconds: float) -> None:
        self._seconds = seconds
        self._idle: queue.LifoQueue[_ParserProcess | None] = queue.LifoQueue()
        self._lock = threading.Lock()
        self._alive: set[_ParserProcess] = set()
        self._closed = False
        for _ in range(count):
            self._idle.put(None)

    def parse(self, body: bytes, *, url: str, content_type: str, at: datetime, at_most: int, feed: str = "") -> Parsed:
        """Like `parse.parse`, but in another process; raises BadFeed also if it takes too much time or memory."""
        request = ParseRequest.model_construct(
            body=body, url=url, content_type=content_type, at=at, at_most=at_most, feed=feed
        )
        line = self._send(request.model_dump_json().encode() + b"\n")
        if not line.endswith(b"\n"):
            raise BadFeed("too_complex", "parsing the document takes too much time or memory")
        answer = ANSWER.validate_json(line)
        if isinstance(answer, ParseError):
            raise BadFeed(answer.code, answer.message)
        return answer

    def close(self) -> None:
        """End all processes, even those that are busy."""
        with self._lock:
            self._closed = True
            for process in self._alive:
                process.end()
            self._alive.clear()

    def _send(self, request: bytes) -> bytes:
        """Return the answer of a process, or an incomplete line if the process was killed."""
        process = self._idle.get()
        try:
            if process is None:
                process = self._start()
            line = process.send(request)
            if not line.endswith(b"\n"):
                self._discard(process)
                process = None
            return line
        finally:
            self._idle.put(process)

    def _start(self) -> _ParserProcess:
        with self._lock:
            if self._closed:
                raise Stopped
            process = _ParserProcess(self._seconds)
            self._alive.add(process)
            return process

    def _discard(self, process: _ParserProcess) -> None:
        with self._lock:
            if self._closed:
                raise Stopped
            self._alive.remove(process)
        process.end()


class _ParserProcess:
    def __init__(self, seconds: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
            start_new_session=True,
        )

    def send(self, request: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
            return self._process.stdout.readline()
        except (OSError, ValueError):  # the process has ended, or its pipes are closed
            return b""

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _main(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # CPU time; the signal ends the process
        answer = _answer(ParseRequest.model_validate_json(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(ANSWER.dump_json(answer) + b"\n")
        sys.stdout.buffer.flush()


def _answer(request: ParseRequest) -> Parsed | ParseError:
    try:
        return parse(
            request.body,
            url=request.url,
            content_type=request.content_type,
            at=request.at,
            at_most=request.at_most,
            feed=request.feed,
        )
    except BadFeed as error:
        return ParseError(code=error.code, message=str(error))
    except Exception as error:
        # An error inside feedparser affects only this document; the process can parse the next one.
        return ParseError(code="unreadable", message=f"the document can't be parsed: {type(error).__name__}")


if __name__ == "__main__":
    _main(float(sys.argv[1]))
