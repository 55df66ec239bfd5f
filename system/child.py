"""Child: one process of the tree, kept running: started again when it dies, given up when it keeps dying.

starting ──ready──▶ up
  ▲  │ died          │ died
  │  ▼               ▼
waiting (longer each time) ──too often──▶ failed
"""

from __future__ import annotations

import contextlib
import http.client
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Literal

from apps.shared.definition import Process

from system import ports

State = Literal["starting", "up", "waiting", "failed", "stopped"]

DEATHS = 5  # in a row: after that it is given up
SETTLED = 30.0  # seconds: one that was up for so long begins to count anew
PAUSE, LONGEST = 0.5, 8.0
LOOK = 1.0
TAIL = 4000


@dataclass(frozen=True, kw_only=True)
class ParentPipe:
    """The reading end of the pipe that ends every child with its parent, and how long a child may take to stop."""

    reading: int
    grace: float


class Child:
    """A process that the system keeps alive. `look` moves it on; nothing here waits for long.

    `listening` is the socket that the process inherits if it listens. It stays open here while the process is started
    again, so no other process gets its port, and a request that comes meanwhile waits for an answer.
    """

    def __init__(
        self,
        process: Process,
        *,
        parent_pipe: ParentPipe,
        environment: Mapping[str, str],
        log: Path,
        listening: socket | None = None,
    ) -> None:
        self.process = process
        self.url = "" if listening is None else ports.url(listening)
        self.state: State = "stopped"
        self.deaths, self.restarts = 0, 0
        self.reason = ""
        self._parent_pipe, self._environment, self._log = parent_pipe, environment, log
        self._running: subprocess.Popen[bytes] | None = None
        self._started_at = self._again_at = 0.0
        self._printed = 0
        self._listening = listening
        self._ready_request: ReadyRequest | None = None

    @property
    def pid(self) -> int | None:
        return None if self._running is None else self._running.pid

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "system.end_with_parent",
            str(self._parent_pipe.reading),
            f"{self._parent_pipe.grace:g}",
        ]
        files = [self._parent_pipe.reading]
        arguments = self.process.arguments
        if self._listening is not None:
            files.append(self._listening.fileno())
            arguments = tuple(part.replace("{fd}", str(self._listening.fileno())) for part in arguments)
        with open(self._log, "ab") as log:
            self._printed = log.tell()
            self._running = subprocess.Popen(
                [*command, self.process.module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                pass_fds=files,
                start_new_session=True,  # Ctrl-C is for the supervisor, which stops the others in order
            )
        self.state, self._started_at = "starting", time.monotonic()

    def look(self) -> None:
        """Notice that it is ready, that it died, or that it is time to start it again."""
        now = time.monotonic()
        if self.state == "waiting" and now >= self._again_at:
            self.restarts += 1
            self.start()
        if self._running is not None and self.ended():
            self._died(now)
        elif self.state == "starting" and self._is_ready():
            self.state, self.reason = "up", ""
        elif self.state == "up" and now - self._started_at > SETTLED:
            self.deaths = 0

    def terminate(self) -> None:
        """Ask it to stop; it is not started again."""
        self._end("stopped")
        if self._running is not None and not self.ended():
            self._running.terminate()

    def kill(self) -> None:
        """End it and all of its group, now."""
        self._end("stopped")
        if self._running is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)

    def ended(self) -> bool:
        """Whether it runs no more. What it may have left of its group is ended too, before its number is free."""
        if self._running is None:
            return True
        if self._running.returncode is None:
            with contextlib.suppress(ChildProcessError):
                if os.waitid(os.P_PID, self._running.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    return False
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)
            self._running.wait()
        return True

    def _died(self, now: float) -> None:
        assert self._running is not None
        self.reason = f"{self.process.name} {_how(self._running.returncode)}{self._last_words()}"
        self._running = None
        self._drop_ready_request()
        self.deaths += 1
        if self.deaths >= DEATHS:
            self._end("failed")
        else:
            self.state, self._again_at = "waiting", now + min(PAUSE * 2 ** (self.deaths - 1), LONGEST)

    def _end(self, state: State) -> None:
        """It is not started again: close its socket, so that requests are refused at once."""
        self.state = state
        self._drop_ready_request()
        if self._listening is not None:
            self._listening.close()

    def _is_ready(self) -> bool:
        if self._listening is None:
            return self.process.ready.encode() in self._output()
        try:
            self._ready_request = self._ready_request or ReadyRequest(self._listening, self.process.ready)
            status = self._ready_request.answer()
        except (OSError, http.client.HTTPException):
            status = 500
        if status is not None:
            self._drop_ready_request()
        return status is not None and status < 500

    def _drop_ready_request(self) -> None:
        if self._ready_request is not None:
            self._ready_request.close()
            self._ready_request = None

    def _output(self) -> bytes:
        with open(self._log, "rb") as log:
            log.seek(self._printed)
            return log.read(TAIL * 10)

    def _last_words(self) -> str:
        """The last line that it printed, which mostly says why."""
        with open(self._log, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._printed, size - TAIL))
            lines = log.read().decode("utf-8", "replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f": {said[-1][:300]}" if said else ""


class ReadyRequest:
    """A request that asks whether a child is ready; its answer is read later, so the supervisor does not wait."""

    def __init__(self, listening: socket, path: str) -> None:
        host, port = listening.getsockname()
        self._connection = http.client.HTTPConnection(host, port, timeout=LOOK)
        self._connection.request("GET", path)

    def answer(self) -> int | None:
        """The status of the answer, if there is one by now."""
        readable, _, _ = select.select([self._connection.sock], [], [], 0)
        return self._connection.getresponse().status if readable else None

    def close(self) -> None:
        self._connection.close()


def _how(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
