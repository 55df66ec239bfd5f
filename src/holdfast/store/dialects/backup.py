"""Backups of a SQLite database that is in use: one snapshot, copied by SQLite itself, then checked."""

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
"""Called with the pages that were copied and the pages in all."""

PAGES = 1000  # copied between two calls of `progress`


@dataclass(frozen=True, kw_only=True)
class Backup:
    """A copy that was checked: where it is, and how many bytes and rows it has."""

    path: Path
    size: int
    rows: int


def copy(module: Any, source: Any, path: Path, *, progress: Progress) -> Backup:
    """Copy what `source` reads now to a new file. The file appears under its name when it is whole and checked."""
    with _part(path) as part, contextlib.closing(module.connect(str(part), isolation_level=None)) as target:
        source.execute("begin")  # one snapshot: what others write meanwhile is not copied, and does not start it again
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
    """Make the copy one file with no `-wal` beside it, and check it; how many rows it has."""
    try:
        target.execute("pragma journal_mode = delete")
        faults = [row[0] for row in target.execute("pragma integrity_check") if row[0] != "ok"]
        rows = _rows(target)
    except module.Error as error:
        raise BackupFailed(f"the copy can't be read, and was removed: {error}") from error
    if faults or rows != expected:
        raise BackupFailed(f"the copy is damaged ({rows} rows of {expected}), and was removed: {'; '.join(faults[:3])}")
    return rows


def _rows(connection: Any) -> int:
    """How many rows all tables have, but for virtual ones, whose modules may not be loaded here."""
    tables = connection.execute(
        "select replace(name, '\"', '\"\"') from sqlite_schema where type = 'table' and sql not like 'create virtual %'"
    ).fetchall()
    return sum(connection.execute(f'select count(*) from "{table}"').fetchone()[0] for (table,) in tables)  # noqa: S608


@contextlib.contextmanager
def _part(path: Path) -> Iterator[Path]:
    """A file beside the target, for its owner alone, that takes its name at the end or is removed."""
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
