"""Supervisor: a small process between the worker and one run, which ends the run when its worker can't.

    worker ──control──▶ supervisor ──fork──▶ the run's process ──▶ whatever that starts
       ▲                                          │
       └──────────────────── desk ────────────────┘

Started as a script: it imports nothing of ours, so that it is there in milliseconds and no job's code runs in it. The
worker tells it until when the lease is sure, and so does the worker's guardian, on the board. When that moment comes
without news (the worker is stopped or swapped out), or the control channel closes (the worker is gone), it kills the
run's group and every other descendant, and waits until none is left.
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
    # Not from the package: to import it would take a quarter of a second.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    from shared_memory import RENEWED_UNTIL, SharedMemory

    del sys.path[0]

LOOK = 0.5  # select's clock stops in suspend, so it is never trusted for longer
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Lines:
    """JSON values, one a line, out of the pieces in which they arrive."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[dict[str, Any]]:
        *lines, self._rest = (self._rest + piece).split(b"\n")
        return [json.loads(line.decode("utf-8", "surrogatepass")) for line in lines]


def line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


class Supervisor:
    """Watches one process, the leader of its own group."""

    def __init__(
        self, control: socket.socket, pid: int, lines: Lines, told: list[dict[str, Any]], board: SharedMemory | None
    ) -> None:
        self._control, self._pid, self._lines, self._board = control, pid, lines, board
        self._until = self._last = self._margin = 0.0
        self._kill_at: float | None = None
        self._why = "ended"
        self._status: int | None = None
        self._heed(told)

    def watch(self) -> None:
        """Return when the process has ended, or has to."""
        woken, wake = socket.socketpair()
        woken.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        while self._reap() and self._status is None:
            now = time.clock_gettime(_BOOT)
            until = self._sure_until()
            if now >= until:
                self._why = "unrenewed"
                return
            if self._kill_at is not None and now >= self._kill_at:
                self._why = "killed"
                return
            soonest = min(until, self._kill_at if self._kill_at is not None else until)
            readable, _, _ = select.select([self._control, woken], [], [], max(0.0, min(LOOK, soonest - now)))
            if woken in readable:
                woken.recv(4096)
            if self._control in readable and not self._hear():
                self._why = "orphaned"
                return

    def _sure_until(self) -> float:
        """Until when the lease is sure, less the time that it takes to kill."""
        guarded = 0.0 if self._board is None else min(self._board[RENEWED_UNTIL], self._last)
        return max(self._until, guarded) - self._margin

    def end(self) -> None:
        """Kill what is left of the group and of its descendants, wait until they are gone, and say so."""
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
            self._control.sendall(line({"gone": self._why, "status": self._status}))

    def _hear(self) -> bool:
        """What the worker says; False when it is gone."""
        try:
            piece = self._control.recv(65536)
        except ConnectionError:
            return False
        self._heed(self._lines.feed(piece))
        return piece != b""

    def _heed(self, told: list[dict[str, Any]]) -> None:
        for one in told:
            if "until" in one:
                self._until, self._last, self._margin = one["until"], one["last"], one["margin"]
            elif self._kill_at is None or one["kill_in"] == 0:
                self._kill_at = time.clock_gettime(_BOOT) + one["kill_in"]
                if one["kill_in"] > 0:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(self._pid, signal.SIGTERM)

    def _reap(self) -> bool:
        """Bury the dead; whether anyone is left alive."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._pid:
                    self._status = os.waitstatus_to_exitcode(status)
        return False


def main(control_fd: int, desk_fd: int, board_fd: int | None) -> None:
    control, desk = socket.socket(fileno=control_fd), socket.socket(fileno=desk_fd)
    os.set_inheritable(control_fd, False)
    os.set_inheritable(desk_fd, False)
    board = None
    if board_fd is not None:
        board = SharedMemory(board_fd)
        os.close(board_fd)
    lines, told = Lines(), list[dict[str, Any]]()
    while not told:
        piece = control.recv(65536)
        if not piece:
            return  # the worker is gone already
        told = lines.feed(piece)
    me = os.getpid()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        control.close()
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != me:
            os._exit(1)
        _work(desk)
    with contextlib.suppress(OSError):  # both sides do it, so that neither has to wait for the other
        os.setpgid(pid, pid)
    desk.close()
    _let_go_of_output()
    control.sendall(line({"pid": pid}))
    supervisor = Supervisor(control, pid, lines, told, board)
    supervisor.watch()
    supervisor.end()


def _work(desk: socket.socket) -> None:
    """The run's process: read where our code is, and become it."""
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        lines, told = Lines(), list[dict[str, Any]]()
        while not told:
            told = lines.feed(desk.recv(1 << 20) or b"null\n")
        start = told[0]
        sys.path[:] = start["sys_path"]
        sys.argv[:] = start["sys_argv"]
        from holdfast.worker.isolation.child import main as work

        work(desk, start)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
    finally:
        os._exit(1)


def _let_go_of_output() -> None:
    """So that the worker sees the run's output end with the run."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for inherited in (0, 1, 2):
        os.dup2(nowhere, inherited)


def _children() -> list[int]:
    """Our own children, and those whose parents have died; empty where the system does not tell."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def _prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the group has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
