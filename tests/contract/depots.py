"""Depots: what lies in one, and how it is damaged."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from holdfast import Artifact, Holdfast

CONTENT = b"content"
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


def lying_in(hf: Holdfast) -> set[str]:
    """The addresses of all files in the depot, unfinished ones too."""
    depot: Any = hf._artifact_store
    if depot.path("x") is None:
        return {each["path"] for page in depot._obstore.list(depot._store) for each in page}
    folder = Path(depot.url)
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def overwrite(hf: Holdfast, artifact: Artifact, content: bytes | None) -> None:
    """What a bad disk, or a person, does to a file."""
    depot: Any = hf._artifact_store
    if artifact.path is None:
        depot._obstore.put(depot._store, artifact.address, content) if content is not None else depot.remove(
            [artifact.address]
        )
    elif content is None:
        artifact.path.unlink()
    else:
        artifact.path.write_bytes(content)
