"""Child: one process of the tree, which is restarted when it dies and given up after five deaths in a row.

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

MAX_DEATHS = 5  # in a row; after that the process is not restarted
STABLE_AFTER = 30.0  # seconds of uptime after which the count of deaths starts again at zero
FIRST_DELAY, MAX_DELAY = 0.5, 8.0
READY_TIMEOUT = 1.0
TAIL = 4000  # bytes


@dataclass(frozen=True, kw_only=True)
class ParentPipe:
    """The reading end of the pipe that stops a child when its parent dies, and how long the child may take to stop."""

    reading: int
    grace: float


class Child:
    """A process that the system keeps running. Call `poll` often; it never blocks for long.

    `listening` is the socket that the process inherits if it listens. It stays open here during a restart, so no other
    process can take its port, and requests wait until the process is back.
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
        self._started_at = self._restart_at = 0.0
        self._log_offset = 0
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
            self._log_offset = log.tell()
            self._running = subprocess.Popen(
                [*command, self.process.module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                pass_fds=files,
                start_new_session=True,  # only the supervisor gets Ctrl-C; it stops the others in order
            )
        self.state, self._started_at = "starting", time.monotonic()

    def poll(self) -> None:
        """Update `state`: detect that the process is ready or has died, and restart it when its delay is over."""
        now = time.monotonic()
        if self.state == "waiting" and now >= self._restart_at:
            self.restarts += 1
            self.start()
        if self._running is not None and self.ended():
            self._died(now)
        elif self.state == "starting" and self._is_ready():
            self.state, self.reason = "up", ""
        elif self.state == "up" and now - self._started_at > STABLE_AFTER:
            self.deaths = 0

    def terminate(self) -> None:
        """Send SIGTERM; the process is not restarted."""
        self._end("stopped")
        if self._running is not None and not self.ended():
            self._running.terminate()

    def kill(self) -> None:
        """Kill the process group at once."""
        self._end("stopped")
        if self._running is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running.pid, signal.SIGKILL)

    def ended(self) -> bool:
        """Whether the process has ended. The rest of its group is then killed, before the process id can be reused."""
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
        self.reason = f"{self.process.name} {_exit_text(self._running.returncode)}{self._last_line()}"
        self._running = None
        self._drop_ready_request()
        self.deaths += 1
        if self.deaths >= MAX_DEATHS:
            self._end("failed")
        else:
            self.state = "waiting"
            self._restart_at = now + min(FIRST_DELAY * 2 ** (self.deaths - 1), MAX_DELAY)

    def _end(self, state: State) -> None:
        """Set the final state, and close the socket so that requests are refused at once."""
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
            log.seek(self._log_offset)
            return log.read(TAIL * 10)

    def _last_line(self) -> str:
        """The last line that the process printed, which usually says why it ended."""
        with open(self._log, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._log_offset, size - TAIL))
            lines = log.read().decode("utf-8", "replace").split("\n")
        printed = [line.strip() for line in lines if line.strip()]
        return f": {printed[-1][:300]}" if printed else ""


class ReadyRequest:
    """A request to a child's readiness path. The answer is read later, so that the supervisor does not block."""

    def __init__(self, listening: socket, path: str) -> None:
        host, port = listening.getsockname()
        self._connection = http.client.HTTPConnection(host, port, timeout=READY_TIMEOUT)
        self._connection.request("GET", path)

    def answer(self) -> int | None:
        """The status code, or None if there is no answer yet."""
        readable, _, _ = select.select([self._connection.sock], [], [], 0)
        return self._connection.getresponse().status if readable else None

    def close(self) -> None:
        self._connection.close()


def _exit_text(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
