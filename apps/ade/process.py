"""Process: starts and ends the engine's programs; no other module does.

    job ──Popen──▶ launch.py ──exec──▶ python of the environment -m ade_engine …      a process group of its own
     ▲                                      │
     └──────── stdout (events), stderr ─────┘

The whole process group is gone when `execute` returns or raises. When a run is cancelled or times out, Holdfast kills
this process with its children, and the kernel kills the engine with it.
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
    *mimetypes.knownfiles,  # openpyxl reads the existing files among them
)
MAX_LINE_LENGTH, MAX_LINES, MAX_ERROR_LENGTH = 64_000, 20_000, 4_000
POLL_SECONDS = 0.2

OnLine = Callable[[bytes], None]


class TimedOut(Exception):
    """The program was killed because it took too long."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The resources that one program may use."""

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
    """How a program ended: its exit code (a negative one is a signal), and the end of its stderr."""

    code: int
    stderr: str = field(repr=False)

    @property
    def reason(self) -> str:
        """The end of stderr; only the last line if it is a traceback."""
        is_traceback = self.stderr.startswith("Traceback") or "\n  File " in self.stderr
        return self.stderr.splitlines()[-1] if is_traceback else self.stderr


def execute(
    program: Sequence[str | Path],
    *,
    folder: Path,
    reads: Sequence[Path],
    limits: Limits,
    on_line: OnLine = lambda line: None,
) -> Ended:
    """Run a program of an environment to its end. It may write only in `folder`, its working folder.

    `on_line` is called with each line of its standard output.
    """
    options = {
        "parent": os.getpid(),
        "limits": limits.as_json(),
        "confine": sys.platform == "linux",
        "reads": [*SYSTEM, sys.base_prefix, *map(str, reads)],
        "writes": [str(folder), "/dev/null"],
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(LAUNCH), json.dumps(options), *map(str, program)],
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
    """Return the program's environment variables: the folder it may write to, but no token and no database URL."""
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _follow(process: subprocess.Popen[bytes], limits: Limits, on_line: OnLine) -> Ended:
    """Read the program's output until the program has ended; a child that it left running causes no delay."""
    deadline = time.monotonic() + limits.seconds
    assert process.stdout is not None
    assert process.stderr is not None
    lines, errors = _Lines(on_line), _Tail()
    with selectors.DefaultSelector() as selector:
        for descriptor, feed in (
            (process.stdout.fileno(), lines.feed),
            (process.stderr.fileno(), errors.feed),
        ):
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ, feed)
        while selector.get_map():
            if time.monotonic() > deadline:
                raise TimedOut(f"the program was killed after {limits.seconds:g} s")
            ended = process.poll() is not None
            ready = selector.select(0 if ended else min(POLL_SECONDS, max(0.0, deadline - time.monotonic())))
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 16)
                key.data(piece)
                if not piece:
                    selector.unregister(key.fd)
            if ended and not ready:
                break
        left = max(0.0, deadline - time.monotonic())
        try:
            code = process.wait(left)
        except subprocess.TimeoutExpired:
            raise TimedOut(f"the program was killed after {limits.seconds:g} s") from None
    return Ended(code, errors.text)


class _Lines:
    """Joins pieces of output into whole lines, limited in length and number."""

    def __init__(self, on_line: OnLine) -> None:
        self._on_line, self._rest, self._count = on_line, b"", 0

    def feed(self, piece: bytes) -> None:
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[: MAX_LINE_LENGTH + 1]
        for line in lines:
            if line and len(line) <= MAX_LINE_LENGTH and self._count < MAX_LINES:
                self._count += 1
                self._on_line(line)


class _Tail:
    """Keeps the end of a stream."""

    def __init__(self) -> None:
        self._last = b""

    def feed(self, piece: bytes) -> None:
        self._last = (self._last + piece)[-MAX_ERROR_LENGTH:]

    @property
    def text(self) -> str:
        return self._last.decode(errors="replace").strip()
