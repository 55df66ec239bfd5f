"""Process: the one place that starts a program of the engine, and the one that ends it.

    job ──Popen──▶ launch.py ──exec──▶ python of the environment -m ade_engine …      a process group of its own
     ▲                                      │
     └──────── stdout (events), stderr ─────┘

Whatever happens, the group is gone when `execute` returns or raises. When a run is cancelled or over its time, Holdfast
ends this process and all that it has started; the kernel kills the program with it.
"""

from __future__ import annotations

import contextlib
import json
import mimetypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LAUNCH = Path(__file__).with_name("launch.py")
SYSTEM = (
    *("/usr", "/lib", "/lib64", "/lib32", "/bin", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom"),
    *mimetypes.knownfiles,  # which openpyxl reads where they are there
)
LONGEST_LINE, MOST_LINES, LAST_WORDS = 64_000, 20_000, 4_000
LOOK = 0.2

Line = Callable[[bytes], None]


class TookTooLong(Exception):
    """The program was stopped because its time was over."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one program may use."""

    seconds: float
    memory: int
    file_size: int
    processes: int = 4096
    files: int = 256

    def as_json(self) -> dict[str, int]:
        return {
            "RLIMIT_AS": self.memory,
            "RLIMIT_CPU": int(self.seconds) + 1,
            "RLIMIT_FSIZE": self.file_size,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_NOFILE": self.files,
            "RLIMIT_CORE": 0,
        }


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code (below zero: the signal), and the last that it wrote to stderr."""

    code: int
    last_words: str = field(repr=False)

    @property
    def reason(self) -> str:
        """Its last words in short: of a trace only the end."""
        is_trace = self.last_words.startswith("Traceback") or "\n  File " in self.last_words
        return self.last_words.splitlines()[-1] if is_trace else self.last_words


def execute(
    program: Sequence[str | Path],
    *,
    folder: Path,
    reads: Sequence[Path],
    limits: Limits,
    on_line: Line = lambda line: None,
) -> Ended:
    """Run a program of an environment to its end. It works in `folder`, which alone it may change.

    Each line that it writes to its standard output is given to `on_line`.
    """
    told = {
        "parent": os.getpid(),
        "limits": limits.as_json(),
        "confine": sys.platform == "linux",
        "reads": [*SYSTEM, sys.base_prefix, *map(str, reads)],
        "writes": [str(folder), "/dev/null"],
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(LAUNCH), json.dumps(told), *map(str, program)],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    )
    with process:
        try:
            return _follow(process, limits, on_line)
        finally:
            end(process)


def environment(folder: Path) -> dict[str, str]:
    """All that the program knows of ours: where it may write. No token, no address of a database."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def end(process: subprocess.Popen[bytes]) -> None:
    """See that nothing of its group is left."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _follow(process: subprocess.Popen[bytes], limits: Limits, on_line: Line) -> Ended:
    """Read what it says until it has ended; what it left running does not keep us."""
    over_at = time.monotonic() + limits.seconds
    assert process.stdout is not None
    assert process.stderr is not None
    lines, words = _Lines(on_line), _Tail()
    with selectors.DefaultSelector() as selector:
        for descriptor, heard in (
            (process.stdout.fileno(), lines.feed),
            (process.stderr.fileno(), words.feed),
        ):
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ, heard)
        while selector.get_map():
            if time.monotonic() > over_at:
                raise TookTooLong(f"it was stopped after {limits.seconds:g} s")
            ended = process.poll() is not None
            ready = selector.select(0 if ended else min(LOOK, max(0.0, over_at - time.monotonic())))
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 16)
                key.data(piece)
                if not piece:
                    selector.unregister(key.fd)
            if ended and not ready:
                break
        left = max(0.0, over_at - time.monotonic())
        try:
            code = process.wait(left)
        except subprocess.TimeoutExpired:
            raise TookTooLong(f"it was stopped after {limits.seconds:g} s") from None
    return Ended(code, words.text)


class _Lines:
    """Whole lines out of pieces, bounded in length and number."""

    def __init__(self, on_line: Line) -> None:
        self._on_line, self._rest, self._told = on_line, b"", 0

    def feed(self, piece: bytes) -> None:
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[: LONGEST_LINE + 1]
        for line in lines:
            if line and len(line) <= LONGEST_LINE and self._told < MOST_LINES:
                self._told += 1
                self._on_line(line)


class _Tail:
    """The last of what it wrote to stderr."""

    def __init__(self) -> None:
        self._last = b""

    def feed(self, piece: bytes) -> None:
        self._last = (self._last + piece)[-LAST_WORDS:]

    @property
    def text(self) -> str:
        return self._last.decode(errors="replace").strip()
