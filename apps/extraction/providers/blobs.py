"""Blobs: a document's bytes, in a folder of this machine or where the settings say."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from apps.extraction.providers import BLOB_NAME, BlobMissing, Blobs, Kept, Trouble, blob_name
from apps.extraction.settings import Settings

PART = "part-"


def open_blobs(settings: Settings) -> Blobs:
    if settings.blobs == "local":
        return LocalBlobs(settings.folder / "blobs")
    from apps.extraction.providers.azure_blobs import AzureBlobs  # only who uses Azure waits for its SDK

    assert settings.azure_storage_connection is not None
    return AzureBlobs(
        settings.azure_storage_connection.get_secret_value(),
        settings.azure_storage_container,
        timeout=settings.request_timeout.total_seconds(),
    )


class LocalBlobs:
    """A folder; a file appears whole or not at all."""

    name = "blobs"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, path: Path) -> None:
        there = self._folder / blob_name(name)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            part = self._folder / f"{PART}{secrets.token_hex(8)}"
            try:
                with path.open("rb") as source, part.open("xb") as copy:
                    while piece := source.read(1 << 20):
                        copy.write(piece)
                    copy.flush()
                    os.fsync(copy.fileno())
                part.replace(there)
            finally:
                part.unlink(missing_ok=True)
            _flush(self._folder)
        except OSError as error:
            raise Trouble(self.name, f"the file could not be kept: {error}") from error

    def get(self, name: str) -> bytes:
        try:
            return (self._folder / blob_name(name)).read_bytes()
        except FileNotFoundError:
            raise BlobMissing(name) from None
        except OSError as error:
            raise Trouble(self.name, f"the file could not be read: {error}") from error

    def remove(self, name: str) -> None:
        (self._folder / blob_name(name)).unlink(missing_ok=True)

    def all(self) -> Sequence[Kept]:
        found = []
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._folder):
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file() and BLOB_NAME.fullmatch(entry.name):
                        found.append(Kept(entry.name, datetime.fromtimestamp(entry.stat().st_mtime, UTC)))
        return found


def _flush(folder: Path) -> None:
    """Have the folder's new name on disk: who is answered may rely on it."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
