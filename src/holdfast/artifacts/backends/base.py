"""The interface of an artifact store.

    stage ──▶ a part, durable under a temporary name ──▶ publish ──▶ a file at its address
                └── discard: the part is deleted

An address is a relative path made by `artifacts`. The name of a part contains the run and claim that it belongs to.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO

from holdfast.support.errors import TooLarge

PARTS = ".parts"
BLOCK = 1 << 20


class ArtifactStore(ABC):
    """Stores files under addresses. Every failure raises ArtifactStoreUnavailable with its cause."""

    url: str

    @abstractmethod
    def scratch(self, part: str) -> Path:
        """Return a local path for writing a part, separate from published files; its folder exists."""

    @abstractmethod
    def stage(self, part: str, content: Measured) -> None:
        """Write the content under a temporary name. It is durable when this returns; an error leaves nothing behind."""

    @abstractmethod
    def take(self, part: str, path: Path, content: Measured) -> None:
        """Stage a file that was written to the `scratch` path of the same part; the file may be moved."""

    @abstractmethod
    def publish(self, part: str, address: str) -> None:
        """Move a staged part to its address, replacing any file there; a second call changes nothing."""

    @abstractmethod
    def discard(self, part: str) -> None:
        """Delete a part if it exists."""

    @abstractmethod
    def parts(self, limit: int) -> list[str]:
        """Return the names of up to `limit` parts."""

    @abstractmethod
    def size(self, address: str) -> int | None:
        """Return the size of the file, or None if there is no file."""

    @abstractmethod
    def open(self, address: str) -> BinaryIO:
        """Open the file for reading, or raise ArtifactNotFound."""

    @abstractmethod
    def remove(self, addresses: Sequence[str]) -> None:
        """Delete files; a missing file is no error."""

    def path(self, address: str) -> Path | None:
        """Return the local path of the file, or None if the store is not on this machine."""
        return None


class Measured:
    """Content that is measured and hashed block by block while it is read, and refused if it is too large."""

    def __init__(self, source: IO[bytes], *, name: str, max_bytes: int) -> None:
        self._source, self._name, self._max_bytes = source, name, max_bytes
        self._digest = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        while block := self._source.read(BLOCK):
            self.size += len(block)
            if self.size > self._max_bytes:
                raise TooLarge(
                    f"artifact {self._name!r} is larger than {self._max_bytes:,} bytes; the setting max_artifact_bytes "
                    "sets this limit"
                )
            self._digest.update(block)
            yield block

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()
