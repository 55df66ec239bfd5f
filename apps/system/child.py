"""Child: one process of the tree, kept running: started again when it dies, given up when it keeps dying.

starting ──ready──▶ up
  ▲  │ died          │ died
  │  ▼               ▼
waiting (longer each time) ──too often──▶ failed
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from apps.application import Process

State = Literal["starting", "up", "waiting", "failed", "stopped"]

DEATHS = 5  # in a row: after that it is given up
SETTLED = 30.0  # seconds: one that was up for so long begins to count anew
PAUSE, LONGEST = 0.5, 8.0
LOOK = 1.0
TAIL = 4000


@dataclass(frozen=True, kw_only=True)
class Leash:
    """The pipe that holds every child, and how long one may take to stop."""

    reading: int
    grace: float


class Child:
    """A process that the system keeps alive. `look` moves it on; nothing here waits for long."""

    def __init__(self, process: Process, *, leash: Leash, environment: Mapping[str, str], log: Path, url: str) -> None:
        self.process, self.url = process, url
        self.state: State = "stopped"
        self.deaths, self.restarts = 0, 0
        self.reason = ""
        self._leash, self._environment, self._log = leash, environment, log
        self._running: subprocess.Popen[bytes] | None = None
        self._started_at = self._again_at = 0.0
        self._printed = 0

    @property
    def pid(self) -> int | None:
        return None if self._running is None else self._running.pid

    def start(self) -> None:
        command = [sys.executable, "-m", "apps.system.leash", str(self._leash.reading), f"{self._leash.grace:g}"]
        with open(self._log, "ab") as log:
            self._printed = log.tell()
            self._running = subprocess.Popen(
                [*command, self.process.module, *self.process.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                pass_fds=[self._leash.reading],
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
        self.state = "stopped"
        if self._running is not None and not self.ended():
            self._running.terminate()

    def kill(self) -> None:
        """End it and all of its group, now."""
        self.state = "stopped"
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
        self.deaths += 1
        if self.deaths >= DEATHS:
            self.state = "failed"
        else:
            self.state, self._again_at = "waiting", now + min(PAUSE * 2 ** (self.deaths - 1), LONGEST)

    def _is_ready(self) -> bool:
        if not self.process.listens:
            return self.process.ready.encode() in self._output()
        try:
            with urllib.request.urlopen(self.url + self.process.ready, timeout=LOOK):
                return True
        except urllib.error.HTTPError as error:
            return error.code < 500
        except OSError:
            return False

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


def _how(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
