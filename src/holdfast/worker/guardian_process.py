"""The guardian's process: keeps the leases of a worker that can't run its own code, and ends the worker if it must.

A function that holds the interpreter lock (a long regular expression, `json`, `pickle`, pandas) stops every thread of
its worker, the heartbeat too. The guardian is a process of its own, so it goes on.

    worker runs its own code            nothing to do
    it stands still, but not stopped    renew its leases, never beyond a run's deadline
    it is stopped (SIGSTOP)             renew nothing
    a lease could be taken away while its function still executes,
    or a deadline has passed and nobody can stop the function      kill the worker, if it is a process of Holdfast's own

Started as a script: it imports nothing of ours until it has to renew, so it needs little memory. It ends when the
worker ends, however that happens.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from holdfast.worker.shared_memory import AWAKE_AT, EXECUTING, GUARDED_UNTIL, RENEWED_UNTIL, STOPPING, SharedMemory
else:
    # Not from the package: to import it costs a quarter of a second, and memory for the worker's whole life.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from shared_memory import AWAKE_AT, EXECUTING, GUARDED_UNTIL, RENEWED_UNTIL, STOPPING, SharedMemory

    del sys.path[0]

if TYPE_CHECKING:
    from holdfast.worker.guardian_renewal import Rescue

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
LONGEST_PAUSE = 0.75  # seconds; select's clock stops in suspend, so it is never trusted for longer


class Guardian:
    def __init__(self, board: SharedMemory, control: int) -> None:
        self._board, self._control = board, control
        told = board.instructions
        self._told = told
        self._pid: int = told["pid"]
        self._lease: float = told["lease"]
        self._may_kill: bool = told["may_kill"]
        # Long enough for a busy machine, short enough to connect and renew before a lease ends.
        self._silence = max(self._lease / 6, 0.5)
        self._pause = min(self._lease / 20, LONGEST_PAUSE)
        self._rescue: Rescue | None = None
        self._renewing: threading.Thread | None = None
        self._renew_at = 0.0
        self._overdue_at: float | None = None
        self._said = ""
        self._worker = _watched(self._pid)

    def watch(self) -> None:
        """Return when the worker is gone, or has closed its end."""
        ends = [self._control, *([] if self._worker is None else [self._worker])]
        while True:
            readable, _, _ = select.select(ends, [], [], self._pause)
            if readable or os.getppid() != self._pid:
                return
            self.look()

    def look(self) -> None:
        """Do what the worker can't do itself, if there is anything."""
        now = time.clock_gettime(_BOOT)
        if now - self._board[AWAKE_AT] < self._silence:
            if self._renewing is not None:
                _start_again()
        elif _state(self._pid) not in "Tt" and now >= self._renew_at:
            self._begin_renewal(now)
        if self._overdue_at is not None and now >= self._overdue_at:
            self._kill("a run is past its timeout, and its function can't be stopped")
        elif self._board[EXECUTING] > 0 and now >= self._board.safe_until:
            self._kill("its leases could not be renewed in time")

    def _begin_renewal(self, now: float) -> None:
        """In a thread: a database that does not answer must not keep us from looking at the time."""
        if self._renewing is None or not self._renewing.is_alive():
            self._renewing = threading.Thread(target=self._renew, args=(now,), daemon=True)
            self._renewing.start()

    def _renew(self, now: float) -> None:
        try:
            if self._rescue is None:
                self._rescue = _load(self._told)
            renewal = self._rescue.renew(stopping=bool(self._board[STOPPING]))
        except Exception as error:
            self._renew_at = now + self._lease / 15
            self._say_once(f"can't renew the leases of {self._told['holder']}, which stands still: {error}")
            return
        self._renew_at = now + self._lease / 3
        self._board[RENEWED_UNTIL] = max(self._board[RENEWED_UNTIL], renewal.renewed_until)
        self._board[GUARDED_UNTIL] = max(self._board[GUARDED_UNTIL], renewal.guarded_until)
        self._overdue_at = renewal.overdue_at
        self._say_once(f"worker {self._told['holder']} stands still; {renewal.words}")

    def _say_once(self, text: str) -> None:
        if text != self._said:
            self._said = text
            _say(text)

    def _kill(self, why: str) -> None:
        if not self._may_kill:
            return
        _say(f"killing worker {self._told['holder']} (pid {self._pid}): {why}; others take over its runs")
        # The worker is our parent and we are alive, so the number can't have gone to another process.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)


def _watched(pid: int) -> int | None:
    """A descriptor that becomes readable when this process ends, where there is one; the parent's number tells, too."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _state(pid: int) -> str:
    """The state of a process as `ps` shows it: T is stopped, t traced."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return found.stdout.strip()[:1]


def _load(told: dict[str, Any]) -> Rescue:
    sys.path[:] = told["sys_path"]
    from holdfast.worker.guardian_renewal import Rescue

    return Rescue(told)


def _start_again() -> None:
    """Become a small process again: give back the connection, and the memory of what was imported."""
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _say(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"holdfast guardian: {text}\n".encode(errors="replace"))


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the worker; the guardian ends when the worker does
    with contextlib.suppress(OSError):
        Guardian(SharedMemory(int(sys.argv[1])), int(sys.argv[2])).watch()
    # Without closing the database: on SQLite, the last one to close it would tidy up its log.
    os._exit(0)


if __name__ == "__main__":
    main()
