"""A local folder as an artifact store.

A file is written under a temporary name, flushed to disk and renamed; then its folder is flushed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from holdfast.artifacts.backends.base import PARTS, ArtifactStore, Measured
from holdfast.support.errors import ArtifactNotFound, ArtifactStoreUnavailable


class LocalFolder(ArtifactStore):
    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._parts = self._folder / PARTS
        self.url = str(self._folder)

    def scratch(self, part: str) -> Path:
        with _raise_unavailable(f"{part} can't be written"):
            self._parts.mkdir(parents=True, exist_ok=True)
        return self._parts / part

    def stage(self, part: str, content: Measured) -> None:
        path = self.scratch(part)
        try:
            with _raise_unavailable(f"{path} can't be written"), open(path, "wb") as file:
                for block in content:
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            self.discard(part)
            raise

    def take(self, part: str, path: Path, content: Measured) -> None:
        for _ in content:
            pass
        with _raise_unavailable(f"{path} can't be flushed to disk"):
            _flush(path)

    def publish(self, part: str, address: str) -> None:
        target = self._folder / address
        with _raise_unavailable(f"{target} can't be written"):
            for left in (2, 1, 0):
                _make(target.parent)
                try:
                    os.replace(self._parts / part, target)
                    break
                except FileNotFoundError:
                    # Either `remove` has just deleted the empty folder, or an earlier transaction that was rolled back
                    # after a deadlock has already moved the part.
                    if not (self._parts / part).exists() and target.exists():
                        break
                    if not left:
                        raise
            _flush(target.parent)

    def discard(self, part: str) -> None:
        with contextlib.suppress(OSError):
            (self._parts / part).unlink()

    def parts(self, limit: int) -> list[str]:
        with _raise_unavailable(f"{self._parts} can't be listed"):
            try:
                with os.scandir(self._parts) as entries:
                    return [entry.name for entry in islice(entries, limit)]
            except FileNotFoundError:
                return []

    def size(self, address: str) -> int | None:
        try:
            with _raise_unavailable(f"{address} can't be read"):
                return (self._folder / address).stat().st_size
        except ArtifactStoreUnavailable as error:
            if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
                return None
            raise

    def open(self, address: str) -> BinaryIO:
        try:
            return open(self._folder / address, "rb")
        except FileNotFoundError:
            raise ArtifactNotFound(f"{address} is not in {self.url}") from None
        except OSError as error:
            raise ArtifactStoreUnavailable(f"{address} can't be read: {error.strerror}") from error

    def remove(self, addresses: Sequence[str]) -> None:
        for address in addresses:
            path = self._folder / address
            with _raise_unavailable(f"{path} can't be removed"):
                path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder == self._folder:
                    break
                try:
                    folder.rmdir()
                except OSError:
                    break  # the folder is not empty

    def path(self, address: str) -> Path:
        return self._folder / address


@contextlib.contextmanager
def _raise_unavailable(what: str) -> Iterator[None]:
    """Raise ArtifactStoreUnavailable for every OSError, such as a full disk or a missing permission."""
    try:
        yield
    except OSError as error:
        raise ArtifactStoreUnavailable(f"{what}: {error.strerror or error}") from error


def _make(folder: Path) -> None:
    """Create a folder and its parents, and flush each parent, so that they survive a power loss."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        _flush(each.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
