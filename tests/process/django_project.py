"""The Django project of docs/guide/django.md, created from the code on that page."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests import python_process
from tests.docs.pages import ROOT, blocks
from tests.python_process import PythonProcess

PAGE = ROOT / "docs" / "guide" / "django.md"


@dataclass
class Project:
    """A Django project in its own folder, on SQLite or PostgreSQL."""

    folder: Path
    url: str
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HOLDFAST_", "DJANGO_", "PYTEST_"))
        } | {"PYTHONPATH": str(self.folder), "HOLDFAST_POLL_INTERVAL": "0.1", "PYTHONWARNINGS": "error"}

    def make(self) -> None:
        """Follow the instructions of the page, up to creating the migrations."""
        self.run("-m", "django", "startproject", "mysite", ".")
        self.run("manage.py", "startapp", "shop")
        for name in ("mysite/asgi.py", "shop/apps.py", "shop/models.py", "shop/tests.py"):
            (self.folder / name).unlink()
        self._remove_contrib_apps()
        self._append_blocks("")
        self.manage("makemigrations", "shop")

    def _remove_contrib_apps(self) -> None:
        """Django's own apps have twenty migrations, which would slow down each test database."""
        settings = (self.folder / "mysite" / "settings.py").read_text()
        self.write("mysite/settings.py", re.sub(r"    'django\.(contrib|middleware)\..*\n", "", settings))
        self.append("mysite/settings.py", "TEMPLATES = []")
        self.write("mysite/urls.py", "urlpatterns = []\n")

    def copied_to(self, folder: Path, url: str) -> Project:
        """A copy of the project on another database."""
        shutil.copytree(self.folder, folder)
        copy = Project(folder, url)
        if url.startswith("postgres"):
            copy._append_blocks("PostgreSQL")
            copy.append("mysite/settings.py", f"DATABASES['default'] |= {copy.server!r}")
        else:
            copy._append_blocks("SQLite")
        return copy

    def _append_blocks(self, wanted: str) -> None:
        for block in blocks(PAGE, "py"):
            first, _, text = block.text.partition("\n")
            name, _, where = first.removeprefix("# ").partition(" on ")
            if where == wanted:
                self.append(name, text)

    @property
    def server(self) -> dict[str, Any]:
        parts = urlsplit(self.url)
        return {
            "NAME": parts.path[1:],
            "USER": parts.username,
            "PASSWORD": "",
            "HOST": parts.hostname,
            "PORT": parts.port,
        }

    def append(self, name: str, text: str) -> None:
        with (self.folder / name).open("a") as file:
            file.write(f"\n{text}\n")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def run(self, *arguments: str, environment: Mapping[str, str] | None = None, fails: bool = False) -> str:
        """Run Python with these arguments; return its standard output, followed by its standard error."""
        done = self._done(arguments, environment or {})
        output = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, output
        return output

    def _done(self, arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        return python_process.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=self.environment | dict(environment),
            timeout=180,
        )

    def manage(self, *arguments: str, fails: bool = False, **environment: str) -> str:
        return self.run("manage.py", *arguments, fails=fails, environment=environment)

    def script(self, text: str) -> str:
        """Run a Python program in which the project is set up; return its standard output."""
        done = self._done(["-c", f"import django\ndjango.setup()\n{text}"], SETTINGS)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log.txt").open("ab") as log:
            return PythonProcess(
                [sys.executable, *arguments],
                cwd=self.folder,
                env=self.environment | SETTINGS,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def log(self) -> str:
        return (self.folder / "log.txt").read_text()


SETTINGS = {"DJANGO_SETTINGS_MODULE": "mysite.settings"}


def end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=60)
