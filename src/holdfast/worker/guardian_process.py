"""Guardian process: renews the leases of a stalled worker, and kills the worker if that is not enough.

A function that holds the interpreter lock (a long regular expression, `json`, `pickle`, pandas) stops every thread of
its worker, including the heartbeat. The guardian is a separate process, so it keeps running.

    the worker runs                    do nothing
    the worker is stalled              renew its leases, never beyond a run's deadline
    the worker is stopped (SIGSTOP)    renew nothing
    a lease could be taken while its function still executes,
    or a deadline has passed and the function can't be stopped     kill the worker, if Holdfast started its process

It runs as a script. Until it has to renew, it imports only one other file of Holdfast, so it needs little memory. It
ends when the worker ends, for whatever reason.
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
    # Import the file and not the package, which would take a quarter of a second and use memory all the time.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from shared_memory import AWAKE_AT, EXECUTING, GUARDED_UNTIL, RENEWED_UNTIL, STOPPING, SharedMemory

    del sys.path[0]

if TYPE_CHECKING:
    from holdfast.worker.guardian_renewal import GuardianRenewal

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
LONGEST_PAUSE = 0.75  # seconds; the clock of `select` stops while the machine is suspended, so keep waits short


class Guardian:
    def __init__(self, memory: SharedMemory, control: int) -> None:
        self._memory, self._control = memory, control
        instructions = memory.instructions
        self._instructions = instructions
        self._pid: int = instructions["pid"]
        self._lease: float = instructions["lease"]
        self._may_kill: bool = instructions["may_kill"]
        # Long enough for a busy machine, short enough to connect and renew before a lease expires.
        self._stalled_after = max(self._lease / 6, 0.5)
        self._pause = min(self._lease / 20, LONGEST_PAUSE)
        self._renewal: GuardianRenewal | None = None
        self._renewing: threading.Thread | None = None
        self._renew_at = 0.0
        self._overdue_at: float | None = None
        self._last_message = ""
        self._worker = _process_descriptor(self._pid)

    def watch(self) -> None:
        """Check the worker regularly until it ends or closes its end of the control socket."""
        ends = [self._control, *([] if self._worker is None else [self._worker])]
        while True:
            readable, _, _ = select.select(ends, [], [], self._pause)
            if readable or os.getppid() != self._pid:
                return
            self.check()

    def check(self) -> None:
        """Renew the leases if the worker is stalled, and kill it if it has become unsafe."""
        now = time.clock_gettime(_BOOT)
        if now - self._memory[AWAKE_AT] < self._stalled_after:
            if self._renewing is not None:
                _restart()
        elif _state(self._pid) not in "Tt" and now >= self._renew_at:
            self._begin_renewal(now)
        if self._overdue_at is not None and now >= self._overdue_at:
            self._kill("a run timed out, and its function can't be stopped")
        elif self._memory[EXECUTING] > 0 and now >= self._memory.safe_until:
            self._kill("its leases could not be renewed in time")

    def _begin_renewal(self, now: float) -> None:
        """Renew in a thread, so that a database that does not answer can't delay the checks."""
        if self._renewing is None or not self._renewing.is_alive():
            self._renewing = threading.Thread(target=self._renew, args=(now,), daemon=True)
            self._renewing.start()

    def _renew(self, now: float) -> None:
        try:
            if self._renewal is None:
                self._renewal = _load(self._instructions)
            renewal = self._renewal.renew(stopping=bool(self._memory[STOPPING]))
        except Exception as error:
            self._renew_at = now + self._lease / 15
            self._print_once(f"worker {self._instructions['holder']} is stalled; can't renew its leases: {error}")
            return
        self._renew_at = now + self._lease / 3
        self._memory[RENEWED_UNTIL] = max(self._memory[RENEWED_UNTIL], renewal.renewed_until)
        self._memory[GUARDED_UNTIL] = max(self._memory[GUARDED_UNTIL], renewal.guarded_until)
        self._overdue_at = renewal.overdue_at
        self._print_once(f"worker {self._instructions['holder']} is stalled; {renewal.message}")

    def _print_once(self, text: str) -> None:
        if text != self._last_message:
            self._last_message = text
            _print(text)

    def _kill(self, reason: str) -> None:
        if not self._may_kill:
            return
        holder = self._instructions["holder"]
        _print(f"killing worker {holder} (pid {self._pid}): {reason}; other workers take over its runs")
        # The worker is our parent process, so its pid can't have been reused.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)


def _process_descriptor(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process ends; None if the system has none (see `watch`)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _state(pid: int) -> str:
    """Return the state of a process as `ps` shows it: T is stopped, t is traced."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        ps = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return ps.stdout.strip()[:1]


def _load(instructions: dict[str, Any]) -> GuardianRenewal:
    sys.path[:] = instructions["sys_path"]
    from holdfast.worker.guardian_renewal import GuardianRenewal

    return GuardianRenewal(instructions)


def _restart() -> None:
    """Replace this process by a fresh one, to close the connection and free the memory of imported modules."""
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _print(text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(2, f"holdfast guardian: {text}\n".encode(errors="replace"))


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the worker handles these; the guardian ends with the worker
    with contextlib.suppress(OSError):
        Guardian(SharedMemory(int(sys.argv[1])), int(sys.argv[2])).watch()
    # Exit without closing the database: on SQLite, closing the last connection would checkpoint the write-ahead log.
    os._exit(0)


if __name__ == "__main__":
    main()
