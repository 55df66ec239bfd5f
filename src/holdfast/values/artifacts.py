"""An artifact as a value: its name, size, checksum and where it is stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, ClassVar

from holdfast.artifacts.backends.base import ArtifactStore, Measured
from holdfast.support.errors import ArtifactCorrupt, ArtifactNotFound


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
    _depot: ClassVar[ArtifactStore | None] = None

    def at(self, depot: ArtifactStore) -> Artifact:
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

    def _where(self) -> ArtifactStore:
        if self._depot is None:
            raise ArtifactNotFound(f"{self.name} was read from a result; open it by hf.artifacts.open(run_id, name)")
        return self._depot


def address_of(place: str, name: str) -> str:
    # Two characters of the (random) end of the first id above it: no folder holds millions of others.
    first = place.partition("/")[0]
    return f"{first[-2:]}/{place}/{name}"
