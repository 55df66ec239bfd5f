"""The service of ade as its tests see it: a process of its own, and what someone outside can ask of it."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.apps.serving import TOKEN, Site
from tests.process.support import wait_for

AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}
LONG = 90.0  # seconds that anything may take on a busy machine

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
HELD = """

if "/checks/" in os.getcwd():
    signal.setitimer(signal.ITIMER_REAL, 0)  # the engine's own limit on a call
    open("waits", "w").close()
    while not os.path.exists("go"):
        time.sleep(0.05)
"""
DOCUMENT = b"Customers of May;;\n;;\nCustomer;Sum;Remark\nAda;1,5;first\nBob;2;\n"
MANY_ROWS = b"Name,Amount\n" + b"".join(f"Name {number},{number}\n".encode() for number in range(50))


def stores(*, long: str) -> list[Any]:
    """Databases of each kind; one of them only with the long tests, where another proves the same path."""
    kinds = ("sqlite", "postgres", "sqlserver")
    return [pytest.param(kind, marks=pytest.mark.long) if kind == long else kind for kind in kinds]


class Service(Site):
    """One API process with its worker; several of them share what lies beside their folders."""

    def __init__(self, url: str, folder: Path, **settings: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        given = {
            "HOLDFAST_ARTIFACTS": str(folder.parent / "artifacts"),
            "HOLDFAST_TICK": "0.2",
            "HOLDFAST_KILL_GRACE": "3",
            "HOLDFAST_SHUTDOWN_GRACE": "0.2",
            "ADE_FOLDER": str(folder),
        }
        given |= {name: value for name, value in os.environ.items() if name == "HOLDFAST_PREFIX"}
        given |= {name.upper(): str(value) for name, value in settings.items()}
        super().__init__(folder, "apps.ade.web:site", "--worker", url=url, settings=given)

    @property
    def url(self) -> str:
        return f"{self.address}/"

    # What someone does

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
        """A run, when it has ended."""

        def look() -> dict[str, Any] | None:
            run: dict[str, Any] = self.get(f"/runs/{run_id}")
            return run if run["status"] not in ("queued", "running") else None

        found: dict[str, Any] = wait_for(look, f"run {run_id} has ended", at_most=at_most, every=0.2)
        return found

    def reached(self, path: str, *statuses: str, at_most: float = LONG) -> dict[str, Any]:
        """A run or a build, when it is in one of these states."""

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.get(path)
            return found if found["status"] in statuses else None

        found: dict[str, Any] = wait_for(look, f"{path} is {' or '.join(statuses)}", at_most=at_most, every=0.2)
        return found

    def log_of(self, run_id: str) -> list[str]:
        return [line["message"] for line in self.get(f"/runs/{run_id}/log")["lines"]]


def held_rules() -> str:
    """Rules whose build stands still in its check until `release` lets it go."""
    return RULES + HELD


def release(*folders: Path, only: str = "") -> None:
    """Let builds go on that stand still there, or only that of one configuration."""
    for folder in folders:
        for place in (folder / "checks").glob("*/waits"):
            with contextlib.suppress(OSError):
                if f'name = "{only}' in (place.parent / "ade.toml").read_text():
                    (place.parent / "go").touch()


def files(name: str = "plain", rules: str = RULES, dependencies: str = "[]") -> dict[str, str]:
    return {"ade.toml": MANIFEST.format(name=name, dependencies=dependencies), "rules.py": rules}


def programs(*folders: Path) -> dict[int, list[str]]:
    """The programs of these folders' environments that run now, by their process id: seen from outside."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any(words[0].startswith(f"{each}/") for each in folders):
                found[int(entry.name)] = words
    return found


def engines(*folders: Path) -> dict[int, list[str]]:
    """The engines among them that work on a run."""
    return {pid: words for pid, words in programs(*folders).items() if "ade_engine" in words and "run" in words}


class Watch:
    """Looks again and again which engines there are at once, in each folder."""

    def __init__(self, *folders: Path) -> None:
        self.most = dict.fromkeys(folders, 0)
        self.seen: dict[Path, set[int]] = {folder: set() for folder in folders}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.is_set():
            found = engines(*self.most)
            for folder in self.most:
                here = {pid for pid, words in found.items() if words[0].startswith(f"{folder}/")}
                self.seen[folder] |= here
                self.most[folder] = max(self.most[folder], len(here))
            self._stop.wait(0.05)
