"""Folder: where a system keeps what it has: database, artifacts, logs; one system at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from pathlib import Path

OURS = ("work.db", "work.db-wal", "work.db-shm", "artifacts", "logs", "status.json", "data")
MARK = "holdfast-system"


class InUse(Exception):
    """Another system runs in this folder."""


class NotOurs(Exception):
    """The folder has something in it that no system put there."""


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
        """What a process has printed."""
        return self.path / "logs" / f"{process}.log"

    def data(self, application: str) -> Path:
        """A folder for an application's own files."""
        made = self.path / "data" / application
        made.mkdir(parents=True, exist_ok=True)
        return made

    def database(self, application: str) -> str:
        """The URL of an application's own database."""
        return f"sqlite:///{self.data(application) / 'work.db'}"

    def take(self, *, fresh: bool) -> None:
        """Have it for this process alone, emptied if `fresh`; InUse, or NotOurs if it is someone else's folder."""
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / MARK).exists():
            raise NotOurs(f"{self.path} is not empty and not a system's folder; name another with --folder")
        self.path.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.path / MARK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise InUse(f"another ./run works in {self.path}; stop it, or name another folder with --folder") from None
        self._lock = lock
        if fresh:
            for name in OURS:
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
