"""Guardian: the worker's side of a small process that renews the worker's leases while the worker is stalled.

`guardian_process` is the code of that process, and `shared_memory` holds the values that both read and write.
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
    """The guardian of one worker; it lives as long as the worker. Without shared memory every method does nothing."""

    def __init__(self, memory: SharedMemory | None = None) -> None:
        self.memory = memory
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @classmethod
    def of(cls, runtime: Runtime, *, holder: str, may_kill: bool) -> Guardian:
        """Start a guardian for this worker, unless it is switched off or a test controls the clock."""
        if not runtime.settings.guardian or type(runtime.clock) is not SystemClock:
            return cls()
        guardian = cls(SharedMemory.create(_instructions(runtime, holder=holder, may_kill=may_kill)))
        guardian.awake(runtime.clock.elapsed())
        guardian.safe_until(
            runtime.clock.elapsed() + (runtime.settings.lease + runtime.settings.proof_for).total_seconds()
        )
        guardian.require()
        return guardian

    # Values that the worker writes

    def awake(self, now: float) -> None:
        """Record that the worker's own code was running at this time."""
        if self.memory is not None:
            self.memory[AWAKE_AT] = now

    def executing(self, count: int) -> None:
        """Set the number of functions in threads and in the event loop that a takeover could execute a second time."""
        if self.memory is not None:
            self.memory[EXECUTING] = count

    def safe_until(self, until: float) -> None:
        """Set the time until which nobody can take one of the worker's leases."""
        if self.memory is not None:
            self.memory[SAFE_UNTIL] = until

    def stopping(self) -> None:
        if self.memory is not None:
            self.memory[STOPPING] = 1

    # Values that the worker reads

    @property
    def renewed_until(self) -> float:
        """The time until which the guardian has renewed the leases."""
        return 0.0 if self.memory is None else self.memory[RENEWED_UNTIL]

    def unsafe_at(self, *, margin: float) -> float:
        """When the worker must restart: `margin` seconds before a lease could be taken from an executing function.

        Infinite if no function is executing.
        """
        memory = self.memory
        return math.inf if memory is None or not memory[EXECUTING] else memory.safe_until - margin

    def require(self) -> None:
        """Start the process again if it has ended; the kernel may have killed it for lack of memory."""
        if self.memory is None or (self._process is not None and self._process.poll() is None):
            return
        if self._process is not None:
            log.warning("the worker's guardian ended with code %s; starting another", self._process.returncode)
        try:
            self._start(self.memory)
        except OSError as error:
            log.warning("could not start the worker's guardian, retrying later: %s", error)

    def close(self) -> None:
        if self._process is not None:
            assert self._control is not None
            self._control.close()
            self._process.kill()
            self._process.wait()
        memory, self.memory, self._process = self.memory, None, None
        if memory is not None:
            os.close(memory.file)  # the memory stays mapped for threads that still use it

    def _start(self, memory: SharedMemory) -> None:
        if self._control is not None:
            self._control.close()
        self._control, remote = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", guardian_process.__file__, str(memory.file), str(remote.fileno())],
                pass_fds=(memory.file, remote.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            remote.close()


def _instructions(runtime: Runtime, *, holder: str, may_kill: bool) -> dict[str, Any]:
    settings = runtime.settings.model_dump(mode="json", exclude={"admin_token"})
    return {
        "pid": os.getpid(),
        "holder": holder,
        "lease": runtime.settings.lease.total_seconds(),
        "may_kill": may_kill,
        "settings": settings | {"url": runtime.store.dialect.url},
        "sys_path": sys.path,
    }
