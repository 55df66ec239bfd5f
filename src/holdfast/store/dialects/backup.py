"""Backups: copy a SQLite database that is in use, from one snapshot, and check the copy."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.support.errors import BackupFailed

Progress = Callable[[int, int], None]
"""Called with the number of pages copied and the total number of pages."""

PAGES = 1000  # copied between two calls of `progress`


@dataclass(frozen=True, kw_only=True)
class Backup:
    """A checked copy: its path, its size in bytes and its number of rows."""

    path: Path
    size: int
    rows: int


def copy(module: Any, source: Any, path: Path, *, progress: Progress) -> Backup:
    """Copy the database of `source` to a new file. The file gets its name when it is complete and checked."""
    with _part(path) as part, contextlib.closing(module.connect(str(part), isolation_level=None)) as target:
        source.execute("begin")  # one snapshot: later writes are not copied, and do not restart the copy
        try:
            expected = _rows(source)
            source.backup(
                target, pages=PAGES, progress=lambda status, remaining, total: progress(total - remaining, total)
            )
        finally:
            source.execute("rollback")
        rows = _checked(module, target, expected)
    return Backup(path=path, size=path.stat().st_size, rows=rows)


def _checked(module: Any, target: Any, expected: int) -> int:
    """Turn the copy into a single file without a `-wal`, check it, and return its number of rows."""
    try:
        target.execute("pragma journal_mode = delete")
        faults = [row[0] for row in target.execute("pragma integrity_check") if row[0] != "ok"]
        rows = _rows(target)
    except module.Error as error:
        raise BackupFailed(f"the copy could not be read and was removed: {error}") from error
    if faults or rows != expected:
        raise BackupFailed(f"the copy was damaged ({rows} of {expected} rows) and was removed: {'; '.join(faults[:3])}")
    return rows


def _rows(connection: Any) -> int:
    """Count the rows of all tables, except virtual tables, whose modules may not be loaded here."""
    tables = connection.execute(
        "select replace(name, '\"', '\"\"') from sqlite_schema where type = 'table' and sql not like 'create virtual %'"
    ).fetchall()
    return sum(connection.execute(f'select count(*) from "{table}"').fetchone()[0] for (table,) in tables)  # noqa: S608


@contextlib.contextmanager
def _part(path: Path) -> Iterator[Path]:
    """Create a private file beside the target; at the end it is renamed to the target, or removed after an error."""
    if os.path.lexists(path):
        raise BackupFailed(f"{path} exists; name a new file")
    try:
        descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise BackupFailed(f"can't write to {path.parent}: {error.strerror}") from error
    os.close(descriptor)
    try:
        yield Path(name)
        _sync(name)
        os.rename(name, path)
        _sync(path.parent)
    except OSError as error:
        raise BackupFailed(f"can't write {path}: {error.strerror}") from error
    finally:
        for left in (name, f"{name}-wal", f"{name}-shm", f"{name}-journal"):
            Path(left).unlink(missing_ok=True)


def _sync(path: str | Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
