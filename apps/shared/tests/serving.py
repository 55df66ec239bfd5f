"""Serving: run an application's processes in their own folder; a test can query, kill and restart them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import httpx
from tests.process.support import wait_for
from tests.python_process import PythonProcess

ROOT = Path(__file__).parents[3]
TOKEN = "a-token-that-only-these-tests-know"
TIMEOUT = 150.0


class Child:
    """A child process `python -m ARGUMENTS` with the application's environment; it prints `ready` when it is up."""

    def __init__(self, folder: Path, *arguments: str, url: str, ready: str, settings: Mapping[str, str]) -> None:
        self._command, self._ready = [sys.executable, "-m", *arguments], ready
        self.folder = folder
        ours = ("HOLDFAST_", "APP_", *{name.partition("_")[0] + "_" for name in settings})
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        self._environment |= {
            "HOLDFAST_URL": url,
            "HOLDFAST_ARTIFACTS": str(folder / "artifacts"),
            "HOLDFAST_ADMIN_TOKEN": TOKEN,
            "HOLDFAST_KILL_GRACE": "0.3",
            "HOLDFAST_SHUTDOWN_GRACE": "1",
            "APP_FOLDER": str(folder),
            "PYTHONUNBUFFERED": "1",
            **settings,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / f"{arguments[1]}-{id(self):x}.log"

    def start(self) -> None:
        assert self._process is None
        printed = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = PythonProcess(
                self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

        def up() -> str | None:
            assert self._process is not None
            output = self.log.read_bytes()[printed:].decode("utf-8", "replace")
            assert self._process.poll() is None, f"the process ended: {output[-2000:]}"
            return output if self._ready in output else None

        self.output = wait_for(up, f"{self._command[2:]} is up")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process with SIGKILL, so that it can't clean up."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            return process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


class Site(Child):
    """`holdfast serve MODULE:site`, and an HTTP client with an admin token."""

    def __init__(self, folder: Path, site: str, *arguments: str, url: str, settings: Mapping[str, str]) -> None:
        serve = ("holdfast", "serve", site, "--port", "0", *arguments)
        super().__init__(folder, *serve, url=url, ready="Ctrl-C to stop\n", settings=settings)
        self.http = httpx.Client()

    def start(self) -> None:
        super().start()
        self.address: str = next(line for line in self.output.splitlines() if line.startswith("http://")).rstrip("/")
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.http = httpx.Client(base_url=self.address, headers=headers, timeout=TIMEOUT, trust_env=False)
        wait_for(self._answers, "the site answers")

    def get(self, path: str, **query: Any) -> Any:
        response = self.http.get(path, params=query)
        response.raise_for_status()
        return response.json()

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.http.get("/healthz").status_code == 200
        return False

    def _end(self, number: int) -> int:
        self.http.close()
        return super()._end(number)
