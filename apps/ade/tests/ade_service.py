"""The service of ade for tests: starts a server process, and calls its API."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from apps.shared.tests.serving import TOKEN, Site
from tests.process.support import wait_for

AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}
LONG = 90.0  # seconds to wait for anything on a busy machine

MANIFEST = 'name = "{name}"\ntitle = "{name}"\nversion = "1.0.0"\nengine = "1"\ndependencies = {dependencies}\n'
RULES = '''"""Rules for tests."""

import os
import signal
import time

from ade_engine import Rules, decimal, headers, text

rules = Rules()
rules.field("name", label="Name", required=True, detectors=[headers("name", "customer")], transforms=[text])
rules.field("amount", label="Amount", detectors=[headers("amount", "sum")], transforms=[decimal()])
'''
SLOW = """

@rules.transform("name")
def wait(value, row):
    time.sleep(3)
    return value
"""
HELD_CHECK = """

if "/checks/" in os.getcwd():
    signal.setitimer(signal.ITIMER_REAL, 0)  # switches off the engine's own limit on a call
    open("waiting", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.05)
"""
DOCUMENT = b"Customers of May;;\n;;\nCustomer;Sum;Remark\nAda;1,5;first\nBob;2;\n"
MANY_ROWS = b"Name,Amount\n" + b"".join(f"Name {number},{number}\n".encode() for number in range(50))


def stores(*, long: str) -> list[Any]:
    """Return the parameters of the three kinds of database; only the long tests use the kind named by `long`."""
    kinds = ("sqlite", "postgres", "sqlserver")
    return [pytest.param(kind, marks=pytest.mark.long) if kind == long else kind for kind in kinds]


class Service(Site):
    """One server process with its worker. Services with folders side by side share the artifact store."""

    def __init__(self, url: str, folder: Path, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        variables = {
            "HOLDFAST_ARTIFACTS": str(folder.parent / "artifacts"),
            "HOLDFAST_POLL_INTERVAL": "0.2",
            "HOLDFAST_KILL_GRACE": "3",
            "HOLDFAST_SHUTDOWN_GRACE": "0.2",
            "ADE_FOLDER": str(folder),
        }
        variables |= {name: value for name, value in os.environ.items() if name == "HOLDFAST_TABLE_PREFIX"}
        variables |= {name.upper(): str(value) for name, value in settings.items()}
        super().__init__(folder, "apps.ade.web:site", "--worker", url=url, settings=variables)

    @property
    def url(self) -> str:
        return f"{self.address}/"

    def post(self, path: str, *, status: int = 201, **body: Any) -> Any:
        response = self.http.post(path, **body)
        assert response.status_code == status, (path, response.status_code, response.text)
        return response.json()

    def workspace(self, name: str) -> str:
        return str(self.post("/workspaces", json={"name": name})["id"])

    def document(self, workspace: str, content: bytes = DOCUMENT, name: str = "customers.csv") -> str:
        return str(self.post(f"/workspaces/{workspace}/documents", files={"file": (name, content)})["id"])

    def configuration(self, workspace: str, name: str, files: dict[str, str]) -> str:
        return str(self.post(f"/workspaces/{workspace}/configurations", json={"name": name, "files": files})["id"])

    def submit(self, configuration: str, document: str) -> dict[str, Any]:
        body = {"input_document_id": document}
        run: dict[str, Any] = self.post(f"/configurations/{configuration}/runs", json=body)
        return run

    def ended(self, run_id: str, *, at_most: float = LONG) -> dict[str, Any]:
        """Wait until a run has ended, and return it."""

        def poll() -> dict[str, Any] | None:
            run: dict[str, Any] = self.get(f"/runs/{run_id}")
            return run if run["status"] not in ("queued", "running") else None

        ended: dict[str, Any] = wait_for(poll, f"run {run_id} has ended", at_most=at_most, every=0.2)
        return ended

    def reached(self, path: str, *statuses: str, at_most: float = LONG) -> dict[str, Any]:
        """Wait until a run or a build has one of these statuses, and return it."""

        def poll() -> dict[str, Any] | None:
            current: dict[str, Any] = self.get(path)
            return current if current["status"] in statuses else None

        reached: dict[str, Any] = wait_for(poll, f"{path} is {' or '.join(statuses)}", at_most=at_most, every=0.2)
        return reached

    def log_of(self, run_id: str) -> list[str]:
        return [line["message"] for line in self.get(f"/runs/{run_id}/log")["lines"]]


def held_rules() -> str:
    """Return rules whose build stops in its check until `release` is called."""
    return RULES + HELD_CHECK


def release(*folders: Path, only: str = "") -> None:
    """Let the held builds in these folders continue, or only the build of one configuration."""
    for folder in folders:
        for waiting in (folder / "checks").glob("*/waiting"):
            with contextlib.suppress(OSError):
                if f'name = "{only}' in (waiting.parent / "ade.toml").read_text():
                    (waiting.parent / "go").touch()


def files(name: str = "plain", rules: str = RULES, dependencies: str = "[]") -> dict[str, str]:
    return {"ade.toml": MANIFEST.format(name=name, dependencies=dependencies), "rules.py": rules}


def programs(*folders: Path) -> dict[int, list[str]]:
    """Return the command lines of running programs of these folders' environments, by process id."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any(command[0].startswith(f"{each}/") for each in folders):
                found[int(entry.name)] = command
    return found


def engines(*folders: Path) -> dict[int, list[str]]:
    """Return the command lines of these folders' engines that execute a run, by process id."""
    return {pid: command for pid, command in programs(*folders).items() if "ade_engine" in command and "run" in command}


class EngineWatch:
    """Records, per folder, which engines ran and how many at once, by polling in a thread."""

    def __init__(self, *folders: Path) -> None:
        self.most = dict.fromkeys(folders, 0)
        self.seen: dict[Path, set[int]] = {folder: set() for folder in folders}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> EngineWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._stop.is_set():
            found = engines(*self.most)
            for folder in self.most:
                running = {pid for pid, command in found.items() if command[0].startswith(f"{folder}/")}
                self.seen[folder] |= running
                self.most[folder] = max(self.most[folder], len(running))
            self._stop.wait(0.05)
