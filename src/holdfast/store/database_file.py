"""The SQLite database file: created before SQLite opens it, and watched while it is open.

Closing any descriptor of a file drops every POSIX lock that the process holds on it. Without those locks, another
program that closes the database takes itself for the last one and deletes the `-wal` with everything in it. So nothing
here opens the database, its `-wal` or its `-shm`: `stat` and `/proc/self/fdinfo` tell all that is needed.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.support.errors import StoreRefused, StoreUnsafe

CHECK_LOCKS_EVERY = 1.0  # seconds
FILES = "/proc/self/fd"
WRITE_LOCK = 120  # the byte of the `-shm` that SQLite locks while it writes
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs"})

Identity = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True, slots=True)
class Files:
    """What a connection has open; `link` leads to its log under /proc, where there is one."""

    database: Identity | None
    wal: Identity | None
    link: str | None = field(default=None, compare=False)


class DatabaseFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.unsafe: StoreUnsafe | None = None
        """Why nothing may be written any more, once that is so."""
        self._database, self._wal, self._shm = str(path), f"{path}-wal", f"{path}-shm"
        self._creating = threading.Lock()
        self._open: dict[int, Files] = {}
        self._locks_can_be_seen: bool | None = None
        self._locks_checked_at = 0.0

    def create(self) -> None:
        """Create the file, for its owner alone, unless it exists. Before the first connection: this closes it again."""
        with self._creating:
            try:
                os.close(os.open(self._database, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                self._refuse_hard_links()
            except OSError as error:
                raise StoreRefused(f"can't open {self.path}: {error.strerror}") from error

    def opened(self, connection: Any, *, before: set[str]) -> None:
        """Remember which files this connection has open; it has read from the database, so all of them exist.

        `before` are the process's open files from before it was made.
        """
        files = self._files()
        links = [f"{FILES}/{number}" for number in open_files() - before]
        link = next((link for link in links if _identity(link) == files.wal), None)
        self._open[id(connection)] = replace(files, link=link)
        if self._locks_can_be_seen is None:
            self._locks_can_be_seen = self._holds_locks()

    def closed(self, connection: Any) -> None:
        self._open.pop(id(connection), None)

    def check(self, connection: Any, *, committed: bool = False) -> None:
        """Raise StoreUnsafe if this connection's files are no longer those in the folder, or our locks are gone.

        `committed` says that a transaction was just committed, which may have gone to a deleted log.
        """
        known = self._open.get(id(connection))
        if known is None:
            return
        if self.unsafe is None and not (self._is_log(known) and (committed or self._is_ours(known.database))):
            self.unsafe = self._problem(known, committed=committed)
        if self.unsafe is not None:
            raise self.unsafe

    def _is_log(self, known: Files) -> bool:
        """Whether the log in the folder is this one.

        The link to an open file tells where it is now, or that it is deleted. To `stat` the log instead would make the
        next commit slower: Linux then writes down a new time of change for it.
        """
        if known.link is not None and _target(known.link) == self._wal:
            return True
        return _identity(self._wal) == known.wal

    def _is_ours(self, known: Identity | None) -> bool:
        return _identity(self._database) == known and self._has_locks()

    def is_replaced(self, connection: Any) -> bool:
        """Whether closing this connection would delete a `-wal` that belongs to someone else."""
        known = self._open.get(id(connection))
        return known is not None and known != self._files()

    def is_being_written_here(self) -> bool | None:
        """Whether a connection of this process has the write lock; None where that can't be seen."""
        if not self._locks_can_be_seen:
            return None
        shm = _identity(self._shm)
        return any(
            _identity(f"{FILES}/{number}") == shm and _has_write_lock(f"{FILES}info/{number}")
            for number in open_files()
        )

    @property
    def log_size(self) -> int:
        try:
            return os.stat(self._wal).st_size
        except OSError:
            return 0

    @property
    def file_system(self) -> str | None:
        """The kind of file system that the file is on, where Linux tells."""
        try:
            mounts = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
        except OSError:
            return None
        found = [(fields[1], fields[2]) for line in mounts if len(fields := line.split()) > 2]
        over = [(len(point), kind) for point, kind in found if self.path.is_relative_to(point)]
        return max(over)[1] if over else None

    def _problem(self, known: Files, *, committed: bool) -> StoreUnsafe:
        now = self._files()
        if known.database != now.database:
            what = f"{self.path.name} was renamed, removed or replaced while it was open"
            remedy = "Put the file back, or restart this process to use the new one"
        else:
            missing = "its -wal was removed" if known != now else "this process has lost its lock on it"
            what = f"{self.path.name} is not safe to write: {missing}, because something closed or deleted the file"
            remedy = (
                "Two SQLite libraries in one process do this: use one for both (sqlite_module=… of Holdfast, "
                "module=… of create_engine). So does code that opens and closes the file itself. Then restart this "
                "process"
            )
        said = "The transaction that just ended may be lost" if committed else "Nothing was written"
        return StoreUnsafe(f"{what}. {said}. {remedy}")

    def _files(self) -> Files:
        return Files(_identity(self._database), _identity(self._wal))

    def _has_locks(self) -> bool:
        """Looked at once a second at most: to look at every open file costs more than to look at two."""
        now = time.monotonic()
        if not self._locks_can_be_seen or now < self._locks_checked_at + CHECK_LOCKS_EVERY:
            return True
        self._locks_checked_at = now
        return self._holds_locks()

    def problem_of(self, pid: int) -> str | None:
        """What another process of this host has lost, as far as Linux tells: its log, or its locks."""
        files = f"/proc/{pid}/fd"
        targets = {_target(f"{files}/{number}") for number in open_files(files)}
        if f"{self._database} (deleted)" in targets:
            return f"it writes to a {self.path.name} that was removed or replaced"
        if f"{self._wal} (deleted)" in targets:
            return f"it writes to a {self.path.name}-wal that was removed"
        if self._database in targets and not self._holds_locks(files):
            return f"it has lost its lock on {self.path.name}"
        return None

    def _holds_locks(self, files: str = FILES) -> bool:
        """Whether a process has its lock on the database and on the index of the log.

        Each open file tells its own locks in one piece. `/proc/locks`, which lists those of the whole machine, is read
        in several pieces, and while other processes lock and unlock, a line of ours may be in none of them.
        """
        wanted = {_identity(self._database), _identity(self._shm)}
        locked = set()
        for number in open_files(files):
            identity = _identity(f"{files}/{number}")
            if identity in wanted and _locks(f"{files}info/{number}"):
                locked.add(identity)
        return None not in wanted and locked == wanted

    def _refuse_hard_links(self) -> None:
        found = os.stat(self._database)
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            raise StoreUnsafe(
                f"{self.path.name} has {found.st_nlink} names (hard links). Each name would have a -wal of its own, "
                "and the file would be corrupted. Nothing was opened. Find the other names with `find -samefile`, and "
                "remove them"
            )


def never_close(connection: Any) -> None:
    """Keep a connection open until the process ends, because closing it would do harm.

    SQLite deletes the `-wal` by its name when it closes the last connection. If the file was replaced, that is the
    `-wal` of another database. An extra reference keeps the connection open.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def open_files(files: str = FILES) -> set[str]:
    """The numbers of a process's open files, where Linux tells."""
    try:
        return set(os.listdir(files))
    except OSError:
        return set()


def _target(link: str) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None


def _has_write_lock(about: str) -> bool:
    """A lock is shown as `lock: 1: POSIX ADVISORY WRITE 4711 00:2a:33 120 120`: the last two are its bytes."""
    return any("WRITE" in lock and int(lock[-2]) <= WRITE_LOCK <= int(lock[-1]) for lock in _locks(about))


def _locks(about: str) -> list[list[str]]:
    """The words of each lock that a process has on an open file, by what `fdinfo` says about the file."""
    try:
        lines = Path(about).read_text("ascii", "replace").splitlines()
    except OSError:
        return []  # closed in between
    return [line.split() for line in lines if line.startswith("lock:")]


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
