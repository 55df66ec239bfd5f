"""Folder: the databases, artifacts and logs of a system. Only one system at a time may use it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

CONTENTS = ("work.db", "work.db-wal", "work.db-shm", "artifacts", "logs", "status.json", "data")
MARK = "holdfast-system"


class InUse(Exception):
    """Another system runs in this folder."""


class NotOurs(Exception):
    """The folder contains other files and was not created by `./run`."""


class Folder:
    """A system's folder, and the lock on it."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._lock: int | None = None

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path / 'work.db'}"

    @property
    def artifacts(self) -> Path:
        return self.path / "artifacts"

    @property
    def status_file(self) -> Path:
        return self.path / "status.json"

    def log(self, process: str) -> Path:
        """The file with the output of a process."""
        return self.path / "logs" / f"{process}.log"

    def data(self, application: str) -> Path:
        """A folder for an application's own files."""
        folder = self.path / "data" / application
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def database(self, application: str) -> str:
        """The URL of an application's own database."""
        return f"sqlite:///{self.data(application) / 'work.db'}"

    def acquire(self, *, fresh: bool) -> None:
        """Lock the folder for this process and empty it if `fresh`.

        Raises InUse if another system has it, and NotOurs if it contains other files.
        """
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / MARK).exists():
            raise NotOurs(f"{self.path} contains other files; choose an empty or new folder with --folder")
        self.path.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path / MARK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise InUse(f"another ./run uses {self.path}; stop it or choose another folder with --folder") from None
        self._lock = lock
        if fresh:
            for name in CONTENTS:
                _remove(self.path / name)
        (self.path / "logs").mkdir(exist_ok=True)
        for log in (self.path / "logs").glob("*.log"):
            log.replace(log.with_suffix(".before"))

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
