"""Supervisor: a small process between the worker and one run, which kills the run if its worker can't.

    worker ──control──▶ supervisor ──fork──▶ the run's process ──▶ its own child processes
       ▲                                          │
       └────────────────── services ──────────────┘

It runs as a script and imports one file of Holdfast, so it starts within milliseconds, and it executes no job code
itself. The worker, or its guardian through shared memory, tells it when the lease ends. It kills the run if the worker
asks for it, if the lease ends without a renewal (the worker is stopped or swapped out), or if the control socket closes
(the worker is gone). It then kills the run's process group and every other descendant, and waits until none is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or __package__:
    from holdfast.worker.shared_memory import RENEWED_UNTIL, SharedMemory
else:
    # Import the file and not the package, which would take a quarter of a second.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from shared_memory import RENEWED_UNTIL, SharedMemory

    del sys.path[0]

LONGEST_PAUSE = 0.5  # seconds; the clock of `select` stops while the machine is suspended, so keep waits short
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Lines:
    """Decodes JSON values, one per line, from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[dict[str, Any]]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [json.loads(line.decode("utf-8", "surrogatepass")) for line in lines]


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


class Supervisor:
    """Watches one process, which leads its own process group."""

    def __init__(
        self,
        control: socket.socket,
        pid: int,
        lines: Lines,
        received: list[dict[str, Any]],
        memory: SharedMemory | None,
    ) -> None:
        self._control, self._pid, self._lines, self._memory = control, pid, lines, memory
        self._until = self._last = self._margin = 0.0
        self._kill_at: float | None = None
        self._reason = "ended"
        self._status: int | None = None
        self._handle(received)

    def watch(self) -> None:
        """Return when the process has ended or must be killed."""
        woken, wake = socket.socketpair()
        woken.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while self._reap() and self._status is None:
            now = time.clock_gettime(_BOOT)
            until = self._valid_until()
            if now >= until:
                self._reason = "unrenewed"
                return
            if self._kill_at is not None and now >= self._kill_at:
                self._reason = "killed"
                return
            soonest = min(until, self._kill_at if self._kill_at is not None else until)
            pause = max(0.0, min(LONGEST_PAUSE, soonest - now))
            readable, _, _ = select.select([self._control, woken], [], [], pause)
            if woken in readable:
                woken.recv(4096)
            if self._control in readable and not self._receive():
                self._reason = "orphaned"
                return

    def _valid_until(self) -> float:
        """Return the time at which the lease ends, minus the time that a kill takes."""
        guarded = 0.0 if self._memory is None else min(self._memory[RENEWED_UNTIL], self._last)
        return max(self._until, guarded) - self._margin

    def end(self) -> None:
        """Kill all remaining processes of the group and its descendants, wait for them, and report to the worker."""
        pause = 0.001
        while self._reap():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            for pid in _children():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(pause)
            pause = min(pause * 2, 0.05)
        with contextlib.suppress(OSError):
            self._control.setblocking(True)
            self._control.sendall(line({"gone": self._reason, "status": self._status}))

    def _receive(self) -> bool:
        """Handle the messages of the worker; False if it is gone."""
        try:
            piece = self._control.recv(65536)
        except ConnectionError:
            return False
        self._handle(self._lines.feed(piece))
        return piece != b""

    def _handle(self, received: list[dict[str, Any]]) -> None:
        for message in received:
            if "until" in message:
                self._until, self._last, self._margin = message["until"], message["last"], message["margin"]
            elif self._kill_at is None or message["kill_in"] == 0:
                self._kill_at = time.clock_gettime(_BOOT) + message["kill_in"]
                if message["kill_in"] > 0:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(self._pid, signal.SIGTERM)

    def _reap(self) -> bool:
        """Collect the exit codes of ended children; False if no child is left."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._pid:
                    self._status = os.waitstatus_to_exitcode(status)
        return False


def main(control_fd: int, services_fd: int, memory_fd: int | None) -> None:
    control, services = socket.socket(fileno=control_fd), socket.socket(fileno=services_fd)
    os.set_inheritable(control_fd, False)
    os.set_inheritable(services_fd, False)
    memory = None
    if memory_fd is not None:
        memory = SharedMemory(memory_fd)
        os.close(memory_fd)
    lines, received = Lines(), list[dict[str, Any]]()
    while not received:
        piece = control.recv(65536)
        if not piece:
            return  # the worker is gone already
        received = lines.feed(piece)
    own_pid = os.getpid()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        control.close()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != own_pid:
            os._exit(1)
        _work(services)
    with contextlib.suppress(OSError):  # both processes do this, so that neither has to wait for the other
        os.setpgid(pid, pid)
    services.close()
    _close_output()
    control.sendall(line({"pid": pid}))
    supervisor = Supervisor(control, pid, lines, received, memory)
    supervisor.watch()
    supervisor.end()


def _work(services: socket.socket) -> None:
    """Execute the run in the forked process: receive the start message, set the import path, and run the job."""
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        lines, received = Lines(), list[dict[str, Any]]()
        while not received:
            received = lines.feed(services.recv(1 << 20) or b"null\n")
        start = received[0]
        sys.path[:] = start["sys_path"]
        sys.argv[:] = start["sys_argv"]
        from holdfast.worker.isolation.child import main as work

        work(services, start)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(1)


def _close_output() -> None:
    """Redirect our own output to /dev/null, so that the worker sees the run's output end with the run."""
    null = os.open(os.devnull, os.O_RDWR)
    for inherited in (0, 1, 2):
        os.dup2(null, inherited)


def _children() -> list[int]:
    """Return our children and adopted orphans; empty if the system can't list them."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _prctl(option: int, value: int) -> None:
    """Call prctl, on Linux only; other systems rely on the process group."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
