"""Blobs: open the blob storage that the settings name, and store blobs in a local folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from apps.extraction.providers import BLOB_NAME, BlobMissing, Blobs, ServiceError, StoredBlob, blob_name
from apps.extraction.settings import Settings
from apps.shared.files import atomic_write
from holdfast import InvalidSetting


def open_blobs(settings: Settings) -> Blobs:
    if settings.blobs == "local":
        return LocalBlobs(settings.folder / "blobs")
    from apps.extraction.providers.azure_blobs import AzureBlobs  # imported here, because its SDK loads slowly

    assert settings.azure_storage_connection is not None
    connection, container = settings.azure_storage_connection.get_secret_value(), settings.azure_storage_container
    try:
        return AzureBlobs(connection, container, timeout=settings.request_timeout.total_seconds())
    except ValueError:
        raise InvalidSetting(
            f"{Settings.prefix}AZURE_STORAGE_CONNECTION: this is not a valid connection string"
        ) from None


class LocalBlobs:
    """A folder of files. A file appears complete or not at all."""

    name = "blobs"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, content: Path | bytes) -> None:
        path = self._folder / blob_name(name)
        # A valid blob name, so that the clean-up deletes the temporary file if a crash leaves it behind.
        part = self._folder / f"part{secrets.token_hex(10)}"
        with _service_errors(self.name, "stored"):
            self._folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path, part=part) as copy:
                _write(copy, content)

    def get(self, name: str) -> bytes:
        with _service_errors(self.name, "read"):
            try:
                return (self._folder / blob_name(name)).read_bytes()
            except FileNotFoundError:
                raise BlobMissing(name) from None

    def remove(self, name: str) -> None:
        with _service_errors(self.name, "deleted"):
            (self._folder / blob_name(name)).unlink(missing_ok=True)

    def all(self) -> Iterator[StoredBlob]:
        with (
            _service_errors(self.name, "listed"),
            contextlib.suppress(FileNotFoundError),
            os.scandir(self._folder) as entries,
        ):
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False) and BLOB_NAME.fullmatch(entry.name):
                        yield StoredBlob(entry.name, datetime.fromtimestamp(entry.stat().st_mtime, UTC))


@contextlib.contextmanager
def _service_errors(provider: str, action: str) -> Iterator[None]:
    """Raise an OSError as a ServiceError that names the action."""
    try:
        yield
    except OSError as error:
        raise ServiceError(
            provider, f"the file could not be {action}: {error.strerror or type(error).__name__}"
        ) from error


def _write(copy: BinaryIO, content: Path | bytes) -> None:
    if isinstance(content, bytes):
        copy.write(content)
        return
    with content.open("rb") as source:
        shutil.copyfileobj(source, copy, 1 << 20)
