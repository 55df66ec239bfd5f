"""Folders on this host that several processes share, with file locks. The kernel frees a lock when its process ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(file: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Hold a lock inside the `with` block; yield False if it is taken and `wait` is false. No child inherits it."""
    operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, operation)
            except BlockingIOError:
                yield False
                return
            if _is_same_file(file, descriptor):  # if not, the lock file was removed during the wait: open the new one
                yield True
                return
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    """Yield an empty folder that is removed at the end of the `with` block."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / name
    with locked(_lock_of(folder)):
        remove(folder)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            remove(folder)
            _lock_of(folder).unlink(missing_ok=True)


def clear(parent: Path) -> None:
    """Remove the folders that killed processes left behind."""
    for folder in [each for each in parent.glob("*") if each.is_dir()]:
        with locked(_lock_of(folder), wait=False) as acquired:
            if acquired:
                remove(folder)
                _lock_of(folder).unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Remove a folder if it exists; rename it first, so that no process sees a partly removed folder."""
    gone = folder.with_name(f".gone-{folder.name}-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _is_same_file(file: Path, descriptor: int) -> bool:
    try:
        at_path, opened = file.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (at_path.st_dev, at_path.st_ino) == (opened.st_dev, opened.st_ino)
