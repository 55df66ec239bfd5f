"""The SQLite database file: created before SQLite opens it, and watched while it is open.

Closing any descriptor of a file releases every POSIX lock that the process holds on it. Without those locks, another
program that closes the database assumes it is the last user and deletes the `-wal` with all its commits. So this module
never opens the database, its `-wal` or its `-shm`; it uses `stat` and `/proc/self/fdinfo` instead.
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
WRITE_LOCK = 120  # the byte of the `-shm` file that SQLite locks while it writes
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "fuse.glusterfs"})

Identity = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files that a connection has open; `link` is the link to its log in /proc, if there is one."""

    database: Identity | None
    wal: Identity | None
    link: str | None = field(default=None, compare=False)


class DatabaseFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.unsafe: StoreUnsafe | None = None
        """The error that says why nothing may be written any more; None while writing is safe."""
        self._database, self._wal, self._shm = str(path), f"{path}-wal", f"{path}-shm"
        self._creating = threading.Lock()
        self._open: dict[int, Files] = {}
        self._locks_can_be_seen: bool | None = None
        self._locks_checked_at = 0.0

    def create(self) -> None:
        """Create the file, readable only by its owner, unless it exists.

        Call it before the first connection, because it opens and closes the file.
        """
        with self._creating:
            try:
                os.close(os.open(self._database, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                self._refuse_hard_links()
            except OSError as error:
                raise StoreRefused(f"can't open {self.path}: {error.strerror}") from error

    def opened(self, connection: Any, *, before: set[str]) -> None:
        """Remember which files this connection has open. It has read from the database, so all of them exist.

        `before` is the set of files that the process had open before it made the connection.
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
        """Raise StoreUnsafe if this connection's files were replaced or removed, or this process's locks are gone.

        `committed` is true after a commit, which may have been written to a deleted log.
        """
        known = self._open.get(id(connection))
        if known is None:
            return
        if self.unsafe is None and not (self._is_log(known) and (committed or self._is_ours(known.database))):
            self.unsafe = self._problem(known, committed=committed)
        if self.unsafe is not None:
            raise self.unsafe

    def _is_log(self, known: Files) -> bool:
        """Whether the connection's log is still the one in the folder.

        The link in /proc shows the path of an open file, or that it was deleted. Calling `stat` on the log would make
        the next commit slower, because Linux would then update its modification time.
        """
        if known.link is not None and _target(known.link) == self._wal:
            return True
        return _identity(self._wal) == known.wal

    def _is_ours(self, known: Identity | None) -> bool:
        return _identity(self._database) == known and self._has_locks()

    def is_replaced(self, connection: Any) -> bool:
        """Whether closing this connection would delete the `-wal` of another database."""
        known = self._open.get(id(connection))
        return known is not None and known != self._files()

    def is_being_written_here(self) -> bool | None:
        """Whether a connection of this process has the write lock; None if the system does not report it."""
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
        """The type of the file system that the file is on; None if the system does not report it."""
        try:
            mounts = Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines()
        except OSError:
            return None
        mounted = [(fields[1], fields[2]) for line in mounts if len(fields := line.split()) > 2]
        containing = [(len(point), kind) for point, kind in mounted if self.path.is_relative_to(point)]
        return max(containing)[1] if containing else None

    def _problem(self, known: Files, *, committed: bool) -> StoreUnsafe:
        now = self._files()
        if known.database != now.database:
            problem = f"{self.path.name} was renamed, removed or replaced while it was open"
            remedy = "Put the file back, or restart this process to use the new one"
        else:
            missing = "its -wal was removed" if known != now else "this process has lost its lock on it"
            problem = f"{self.path.name} is not safe to write: {missing}, because something closed or deleted the file"
            remedy = (
                "The cause may be two SQLite libraries in one process (use one for both: sqlite_module=… of Holdfast, "
                "module=… of create_engine), or code that opens and closes the file itself. Remove the cause and "
                "restart this process"
            )
        consequence = "The transaction that just ended may be lost" if committed else "Nothing was written"
        return StoreUnsafe(f"{problem}. {consequence}. {remedy}")

    def _files(self) -> Files:
        return Files(_identity(self._database), _identity(self._wal))

    def _has_locks(self) -> bool:
        """Whether this process has its locks. Checked at most once a second, because it looks at every open file."""
        now = time.monotonic()
        if not self._locks_can_be_seen or now < self._locks_checked_at + CHECK_LOCKS_EVERY:
            return True
        self._locks_checked_at = now
        return self._holds_locks()

    def problem_of(self, pid: int) -> str | None:
        """Say what another process of this host has lost: the file, its log or its locks; None if nothing."""
        files = f"/proc/{pid}/fd"
        targets = {_target(f"{files}/{number}") for number in open_files(files)}
        if f"{self._database} (deleted)" in targets:
            return f"it writes to an old {self.path.name} that was removed or replaced"
        if f"{self._wal} (deleted)" in targets:
            return f"it writes to a {self.path.name}-wal that was removed"
        if self._database in targets and not self._holds_locks(files):
            return f"it has lost its lock on {self.path.name}"
        return None

    def _holds_locks(self, files: str = FILES) -> bool:
        """Whether a process has its locks on the database and on the index of the log.

        The `fdinfo` of each open file lists its locks in a single read. `/proc/locks` lists those of the whole machine
        and takes several reads, so a line can be missing while other processes lock and unlock.
        """
        wanted = {_identity(self._database), _identity(self._shm)}
        locked = set()
        for number in open_files(files):
            identity = _identity(f"{files}/{number}")
            if identity in wanted and _locks(f"{files}info/{number}"):
                locked.add(identity)
        return None not in wanted and locked == wanted

    def _refuse_hard_links(self) -> None:
        status = os.stat(self._database)
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            raise StoreUnsafe(
                f"{self.path.name} has {status.st_nlink} names (hard links). Each name would have a -wal of its own, "
                "and the file would be corrupted. Nothing was opened. Find the other names with `find -samefile`, and "
                "remove them"
            )


def never_close(connection: Any) -> None:
    """Keep a connection to a replaced file open until the process ends.

    SQLite deletes the `-wal` by its name when it closes the last connection, and here that would be the `-wal` of
    another database. An extra reference keeps the connection open.
    """
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def open_files(files: str = FILES) -> set[str]:
    """Return the descriptor numbers of a process's open files; empty if the system does not list them."""
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
    """Whether SQLite's write lock is among the locks of an open file.

    A line is `lock: 1: POSIX ADVISORY WRITE 4711 00:2a:33 120 120`; the last two numbers are the locked bytes.
    """
    return any("WRITE" in lock and int(lock[-2]) <= WRITE_LOCK <= int(lock[-1]) for lock in _locks(about))


def _locks(about: str) -> list[list[str]]:
    """Return the words of each lock line in the `fdinfo` of an open file."""
    try:
        lines = Path(about).read_text("ascii", "replace").splitlines()
    except OSError:
        return []  # the file was closed meanwhile
    return [line.split() for line in lines if line.startswith("lock:")]


def _identity(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
