"""List the files of an artifact store, and damage them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from holdfast import Artifact, Holdfast

CONTENT = b"content"
CHECKSUM = hashlib.sha256(CONTENT).hexdigest()


def stored_files(hf: Holdfast) -> set[str]:
    """The addresses of all files in the artifact store, unfinished ones too."""
    store: Any = hf._artifact_store
    if store.path("x") is None:
        return {each["path"] for page in store._obstore.list(store._store) for each in page}
    folder = Path(store.url)
    return {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}


def overwrite(hf: Holdfast, artifact: Artifact, content: bytes | None) -> None:
    """Replace the content of a stored file, or delete the file."""
    store: Any = hf._artifact_store
    if artifact.path is None:
        store._obstore.put(store._store, artifact.address, content) if content is not None else store.remove(
            [artifact.address]
        )
    elif content is None:
        artifact.path.unlink()
    else:
        artifact.path.write_bytes(content)
