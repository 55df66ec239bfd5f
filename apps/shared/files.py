"""Files: what the standard library leaves out about durable files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def written_whole(path: Path, *, part: Path) -> Iterator[BinaryIO]:
    """Write a file that is there whole or not at all, and survives a power cut; `part` is its name until then."""
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Write a folder's list of names to disk: a new or removed name survives a power cut from here on."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
