"""Folders on this host that several processes share, with locks. A lock ends with the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(file: Path, *, shared: bool = False, wait: bool = True) -> Iterator[bool]:
    """Hold a lock while inside; False if someone else has it and we do not wait. Nobody inherits it."""
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, how)
            except BlockingIOError:
                yield False
                return
            if _is(file, descriptor):  # else it was removed while we waited: there is another one by now
                yield True
                return
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    """An empty folder that is gone when it is left."""
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
    """Remove what was left by those who were killed."""
    for folder in [each for each in parent.glob("*") if each.is_dir()]:
        with locked(_lock_of(folder), wait=False) as ours:
            if ours:
                remove(folder)
                _lock_of(folder).unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Take a folder away, be it there or not; no one finds half of it under its name."""
    gone = folder.with_name(f".gone-{folder.name}-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _is(file: Path, descriptor: int) -> bool:
    try:
        there, ours = file.stat(), os.fstat(descriptor)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
