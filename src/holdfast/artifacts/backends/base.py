"""What an artifact store can do.

    stage ──▶ a part, durable under a temporary name ──▶ publish ──▶ at its address
                └── discard: nothing is left

An address is a relative path that `artifacts` has made; a part's name tells the run and attempt that it belongs to.
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
    """A place for files with names. Whatever fails is a DepotUnavailable that says why."""

    url: str

    @abstractmethod
    def scratch(self, part: str) -> Path:
        """A local path to write to, outside of everything that is published; its folder exists."""

    @abstractmethod
    def stage(self, part: str, content: Measured) -> None:
        """Write all of the content under a temporary name; durable when this returns, gone when it raises."""

    @abstractmethod
    def take(self, part: str, path: Path, content: Measured) -> None:
        """`stage` of a file that is ours to move, written to `scratch` of the same part."""

    @abstractmethod
    def publish(self, part: str, address: str) -> None:
        """Put a staged part where it belongs, in place of what was there; a second time does nothing."""

    @abstractmethod
    def discard(self, part: str) -> None:
        """Forget a part, if it is there."""

    @abstractmethod
    def parts(self, limit: int) -> list[str]:
        """Some of the parts that lie here."""

    @abstractmethod
    def size(self, address: str) -> int | None:
        """How large the file is; None if there is none."""

    @abstractmethod
    def open(self, address: str) -> BinaryIO:
        """The file, to read, or ArtifactNotFound."""

    @abstractmethod
    def remove(self, addresses: Sequence[str]) -> None:
        """Remove files; one that is gone already is fine."""

    def path(self, address: str) -> Path | None:
        """Where the file lies on this machine, if it does."""
        return None


class Measured:
    """A content on its way: counted and hashed block by block, refused when it grows too large."""

    def __init__(self, source: IO[bytes], *, name: str, max_bytes: int) -> None:
        self._source, self._name, self._max_bytes = source, name, max_bytes
        self._digest = hashlib.sha256()
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        while block := self._source.read(BLOCK):
            self.size += len(block)
            if self.size > self._max_bytes:
                raise TooLarge(
                    f"artifact {self._name!r} is larger than {self._max_bytes:,} bytes (setting max_artifact_bytes)"
                )
            self._digest.update(block)
            yield block

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()
