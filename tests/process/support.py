"""Helpers for tests of real processes: workers, marks and process state."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.python_process import PythonProcess
from tests.waiting import wait_for as wait_for

PROGRAMS = Path(__file__).parent / "programs"


def gone(pid: int) -> bool:
    """Whether a process has ended, even if its parent has not reaped it yet."""
    return state_of(pid) in ("Z", "X")


def state_of(pid: int) -> str:
    """The state letter of a process in /proc; X if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


class WorkerProcess:
    """A worker process started with `run_worker.py`."""

    def __init__(self, module: str, *options: str, log: Path) -> None:
        self._log = open(log, "ab")  # noqa: SIM115
        self.process = PythonProcess(
            [sys.executable, str(PROGRAMS / "run_worker.py"), module, *options],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.stopped = False

    @property
    def pid(self) -> int:
        return self.process.pid

    def ready(self) -> WorkerProcess:
        line = self.read_line()
        assert line.startswith("ready"), line
        return self

    def read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> None:
        for number in (signal.SIGKILL, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)
        self.process.wait(timeout=60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._log.close()


@contextlib.contextmanager
def outside_clients(folder: Path) -> Iterator[None]:
    """Run external SQLite clients on the databases below the folder; check that they made at least ten visits."""
    process = PythonProcess([sys.executable, PROGRAMS / "sqlite_clients.py", folder], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        process.terminate()
        visits, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert int(visits) >= 10


def descendants(pid: int) -> Iterator[int]:
    # If a process ends meanwhile, its folder is gone or reading it raises ProcessLookupError.
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from descendants(int(child))


def is_a_run(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return b"supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes() and not gone(pid)
    return False


def is_a_guardian(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return b"guardian_process.py" in Path(f"/proc/{pid}/cmdline").read_bytes() and not gone(pid)
    return False


@dataclass(frozen=True)
class Mark:
    """A line that a job has written with `programs/marks.py`."""

    at: float
    what: str
    run_id: str
    claim: int
    pid: int


def marks(folder: Path) -> list[Mark]:
    path = folder / "marks.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [
        Mark(float(at), what, run_id, int(claim), int(pid))
        for at, what, run_id, claim, pid in (line.split() for line in lines)
    ]


def overlaps(found: list[Mark], *, killed: dict[int, float]) -> list[str]:
    """Runs with overlapping attempts; `killed` has the time at which each killed process ended, by pid."""
    ends = {(mark.run_id, mark.claim): mark.at for mark in found if mark.what == "end"}
    spans: dict[str, list[tuple[float, float]]] = {}
    for mark in found:
        if mark.what == "start":
            end = ends.get((mark.run_id, mark.claim), killed.get(mark.pid, float("inf")))
            spans.setdefault(mark.run_id, []).append((mark.at, end))
    return [
        run_id
        for run_id, of_run in spans.items()
        for (_, first_end), (second_start, _) in pairwise(sorted(of_run))
        if second_start < first_end
    ]
