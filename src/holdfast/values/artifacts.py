"""An artifact as a value: its name, size, checksum and where it is stored."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar

from holdfast.support.errors import ArtifactCorrupt, ArtifactNotFound

if TYPE_CHECKING:
    from holdfast.artifacts.backends.base import ArtifactStore

BLOCK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A file that a run has published: its name, size and SHA-256 checksum, and methods to read it."""

    run_id: str
    folder: str
    name: str
    claim: int
    size: int
    sha256: str
    created_at: datetime

    # Not a field: an artifact may be a run's result, and only its fields are stored.
    _store: ClassVar[ArtifactStore | None] = None

    def at(self, store: ArtifactStore) -> Artifact:
        """Set the artifact store that the content is read from, and return the artifact."""
        object.__setattr__(self, "_store", store)
        return self

    @property
    def address(self) -> str:
        """Its path in the artifact store, made from its run (or pipeline, stage, version and segment) and its name."""
        return address_of(self.folder, self.name)

    @property
    def path(self) -> Path | None:
        """Its file on this machine; None if it is in an object storage."""
        return self._require_store().path(self.address)

    def open(self, *, verify: bool = False) -> BinaryIO:
        """Open the content for reading. With `verify`, check it first and raise ArtifactCorrupt if it has changed."""
        if verify:
            self.check()
        return self._require_store().open(self.address)

    def read(self) -> bytes:
        """Read all of the content; raise ArtifactCorrupt if it has changed."""
        with self.open() as file:
            content = file.read()
        if len(content) != self.size or hashlib.sha256(content).hexdigest() != self.sha256:
            raise ArtifactCorrupt(f"{self.address} has changed since it was written; make it again")
        return content

    def check(self) -> None:
        """Raise ArtifactNotFound if the file is missing, or ArtifactCorrupt if it has changed."""
        size = self._require_store().size(self.address)
        if size is None:
            raise ArtifactNotFound(f"{self.address} is recorded, but it is not in {self._require_store().url}")
        if size == self.size:
            digest = hashlib.sha256()
            with self._require_store().open(self.address) as file:
                while block := file.read(BLOCK):
                    digest.update(block)
            if digest.hexdigest() == self.sha256:
                return
        raise ArtifactCorrupt(f"{self.address} has changed since it was written; make it again")

    def _require_store(self) -> ArtifactStore:
        if self._store is None:
            raise ArtifactNotFound(f"{self.name} was read from a result; open it with hf.artifacts.open(run_id, name)")
        return self._store


def address_of(folder: str, name: str) -> str:
    # Spread over folders by the last two characters of the id, which are random: no folder gets millions of entries.
    first = folder.partition("/")[0]
    return f"{first[-2:]}/{folder}/{name}"
