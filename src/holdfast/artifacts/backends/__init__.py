"""Backends: where artifacts are stored. A folder, or a bucket of an object storage."""

from __future__ import annotations

from pathlib import Path

from holdfast.artifacts.backends.base import ArtifactStore
from holdfast.artifacts.backends.local import LocalFolder


def open_artifact_store(where: Path | str) -> ArtifactStore:
    """The artifact store at a folder, or at a URL like `az://container/prefix`, `s3://bucket/prefix` or `gs://bucket/prefix`."""
    if isinstance(where, str) and "://" in where:
        from holdfast.artifacts.backends.objects import ObjectStorage

        return ObjectStorage(where)
    return LocalFolder(Path(where))


def absolute(where: Path | str) -> str:
    """The same place, wherever the process that hears of it was started."""
    return str(where.absolute()) if isinstance(where, Path) else where
