"""Guardian: the worker's side of a small process that renews its leases while the worker can't.

See `guardian_process` for what that process does, and `shared_memory` for what the two share.
"""

from __future__ import annotations

import logging
import math
import os
import socket
import subprocess
import sys
from typing import Any

from holdfast.runtime import Runtime
from holdfast.support.clock import SystemClock
from holdfast.worker import guardian_process
from holdfast.worker.shared_memory import AWAKE_AT, EXECUTING, RENEWED_UNTIL, SAFE_UNTIL, STOPPING, SharedMemory

log = logging.getLogger("holdfast.worker")


class Guardian:
    """Started with a worker, and gone with it. Without a process, all of this does nothing."""

    def __init__(self, board: SharedMemory | None = None) -> None:
        self.board = board
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @classmethod
    def of(cls, runtime: Runtime, *, holder: str, may_kill: bool) -> Guardian:
        """One for this worker, unless it is switched off or time is not the system's own."""
        if not runtime.settings.guardian or type(runtime.clock) is not SystemClock:
            return cls()
        guardian = cls(SharedMemory.create(_instructions(runtime, holder=holder, may_kill=may_kill)))
        guardian.awake(runtime.clock.elapsed())
        guardian.safe_until(
            runtime.clock.elapsed() + (runtime.settings.lease + runtime.settings.proof_for).total_seconds()
        )
        guardian.require()
        return guardian

    # What the worker says

    def awake(self, now: float) -> None:
        """The worker runs its own code."""
        if self.board is not None:
            self.board[AWAKE_AT] = now

    def executing(self, count: int) -> None:
        """So many functions in threads and in the event loop could run beside another attempt."""
        if self.board is not None:
            self.board[EXECUTING] = count

    def safe_until(self, until: float) -> None:
        """Until then nobody can have taken a lease of ours away."""
        if self.board is not None:
            self.board[SAFE_UNTIL] = until

    def stopping(self) -> None:
        if self.board is not None:
            self.board[STOPPING] = 1

    # What the worker asks

    @property
    def renewed_until(self) -> float:
        """Until when the guardian has renewed our leases."""
        return 0.0 if self.board is None else self.board[RENEWED_UNTIL]

    def unsafe_at(self, *, margin: float) -> float:
        """So long before a lease may be taken away from a function that still executes; never, if none does."""
        board = self.board
        return math.inf if board is None or not board[EXECUTING] else board.safe_until - margin

    def require(self) -> None:
        """See that the process lives; it may have been killed for want of memory."""
        if self.board is None or (self._process is not None and self._process.poll() is None):
            return
        if self._process is not None:
            log.warning("the worker's guardian ended (%s); starting another", self._process.returncode)
        try:
            self._start(self.board)
        except OSError as error:
            log.warning("the worker's guardian could not be started, trying again later: %s", error)

    def close(self) -> None:
        if self._process is not None:
            assert self._control is not None
            self._control.close()
            self._process.kill()
            self._process.wait()
        board, self.board, self._process = self.board, None, None
        if board is not None:
            os.close(board.file)  # the memory stays for threads that linger

    def _start(self, board: SharedMemory) -> None:
        if self._control is not None:
            self._control.close()
        self._control, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", guardian_process.__file__, str(board.file), str(theirs.fileno())],
                pass_fds=(board.file, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            theirs.close()


def _instructions(runtime: Runtime, *, holder: str, may_kill: bool) -> dict[str, Any]:
    settings = runtime.settings.model_dump(mode="json", exclude={"token"})
    return {
        "pid": os.getpid(),
        "holder": holder,
        "lease": runtime.settings.lease.total_seconds(),
        "may_kill": may_kill,
        "settings": settings | {"url": runtime.store.dialect.url},
        "sys_path": sys.path,
    }
