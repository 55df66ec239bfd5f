"""What the tests of real processes share: a worker to be killed, and ways to wait without hoping."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def wait_for(condition: Callable[[], Any], *, at_most: float = 20.0, what: str = "") -> Any:
    """What the condition gives as soon as it gives something; a failure after so many seconds."""
    give_up_at = time.monotonic() + at_most
    while time.monotonic() < give_up_at:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"not within {at_most} s: {what or condition}")


def gone(pid: int) -> bool:
    """Whether a process runs no more; one that is dead and not yet buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return True


class WorkerProcess:
    """A worker started by `work.py`, and its whole fate."""

    def __init__(self, module: str, *options: str, log: Path) -> None:
        self._log = open(log, "ab")  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "work.py"), module, *options],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.stopped = False

    @property
    def pid(self) -> int:
        return self.process.pid

    def ready(self) -> WorkerProcess:
        line = self.said()
        assert line.startswith("ready"), line
        return self

    def said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        for number in (signal.SIGKILL, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)
        self.process.wait(timeout=20)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()


def descendants(pid: int) -> Iterator[int]:
    with contextlib.suppress(FileNotFoundError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from descendants(int(child))


def is_a_run(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return b"supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes() and not gone(pid)
    return False
