"""What a depot can do, and what an artifact is.

    stage ──▶ a part, durable under a temporary name ──▶ publish ──▶ at its address
                └── discard: nothing is left

An address is a relative path that `artifacts` has made; a part's name tells the run and attempt that it belongs to.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, BinaryIO, ClassVar

from holdfast.errors import ArtifactCorrupt, ArtifactNotFound, TooLarge

PARTS = ".parts"
BLOCK = 1 << 20


class Depot(ABC):
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


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file that a run has made: what it is called, how large it is, its SHA-256, and a way to read it."""

    run_id: str
    place: str
    name: str
    attempt: int
    size: int
    sha256: str
    made_at: datetime

    # No field: an artifact may be a run's result, and is stored as the values above.
    _depot: ClassVar[Depot | None] = None

    def at(self, depot: Depot) -> Artifact:
        """The same artifact, which now knows where it lies."""
        object.__setattr__(self, "_depot", depot)
        return self

    @property
    def address(self) -> str:
        """Where it lies in the depot; it follows from run (or pipeline, stage, version, segment) and name."""
        return address_of(self.place, self.name)

    @property
    def path(self) -> Path | None:
        """Its file on this machine; None where it lies in an object storage."""
        return self._where().path(self.address)

    def open(self, *, verify: bool = False) -> BinaryIO:
        """The content, to read; with `verify` its checksum is checked first, and ArtifactCorrupt raised."""
        if verify:
            self.check()
        return self._where().open(self.address)

    def read(self) -> bytes:
        """All of the content, checked."""
        with self.open() as file:
            content = file.read()
        if len(content) != self.size or hashlib.sha256(content).hexdigest() != self.sha256:
            raise ArtifactCorrupt(f"{self.address} is not as it was written; make it again")
        return content

    def check(self) -> None:
        """Raise ArtifactNotFound or ArtifactCorrupt unless the file is there and as it was written."""
        found = self._where().size(self.address)
        if found is None:
            raise ArtifactNotFound(f"{self.address} is recorded, but it is not in {self._where().url}")
        if found == self.size:
            with self._where().open(self.address) as file:
                content = Measured(file, name=self.name, max_bytes=self.size)
                if sum(len(block) for block in content) == self.size and content.sha256 == self.sha256:
                    return
        raise ArtifactCorrupt(f"{self.address} is not as it was written; make it again")

    def _where(self) -> Depot:
        if self._depot is None:
            raise ArtifactNotFound(f"{self.name} was read from a result; open it by hf.artifacts.open(run_id, name)")
        return self._depot


def address_of(place: str, name: str) -> str:
    # Two characters of the (random) end of the first id above it: no folder holds millions of others.
    first = place.partition("/")[0]
    return f"{first[-2:]}/{place}/{name}"
