"""Backends: artifact stores in a local folder or in an object storage bucket."""

from __future__ import annotations

from pathlib import Path

from holdfast.artifacts.backends.base import ArtifactStore
from holdfast.artifacts.backends.local import LocalFolder


def open_artifact_store(where: Path | str) -> ArtifactStore:
    """Open the artifact store at a folder, or at a URL such as `az://container/prefix`, `s3://bucket` or `gs://bucket`."""
    if isinstance(where, str) and "://" in where:
        from holdfast.artifacts.backends.objects import ObjectStorage

        return ObjectStorage(where)
    return LocalFolder(Path(where))


def absolute(where: Path | str) -> str:
    """Return an absolute location, so that processes with another working directory find the same store."""
    return str(where.absolute()) if isinstance(where, Path) else where
