"""Blobs: a document's bytes, in a folder of this machine or where the settings say."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from apps.extraction.providers import BLOB_NAME, BlobMissing, Blobs, Kept, Trouble, blob_name
from apps.extraction.settings import Settings
from apps.shared.files import sync_folder
from holdfast import InvalidSetting


def open_blobs(settings: Settings) -> Blobs:
    if settings.blobs == "local":
        return LocalBlobs(settings.folder / "blobs")
    from apps.extraction.providers.azure_blobs import AzureBlobs  # only who uses Azure waits for its SDK

    assert settings.azure_storage_connection is not None
    connection, container = settings.azure_storage_connection.get_secret_value(), settings.azure_storage_container
    try:
        return AzureBlobs(connection, container, timeout=settings.request_timeout.total_seconds())
    except ValueError:
        raise InvalidSetting(f"{Settings.prefix}AZURE_STORAGE_CONNECTION: it is not a connection string") from None


class LocalBlobs:
    """A folder; a file appears whole or not at all."""

    name = "blobs"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, content: Path | bytes) -> None:
        there = self._folder / blob_name(name)
        # What a crash leaves of it has a name like any other, so it is collected like any other.
        part = self._folder / f"part{secrets.token_hex(10)}"
        with _told(self.name, "kept"):
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                with part.open("xb") as copy:
                    _write(copy, content)
                    copy.flush()
                    os.fsync(copy.fileno())
                part.replace(there)
            finally:
                part.unlink(missing_ok=True)
            sync_folder(self._folder)

    def get(self, name: str) -> bytes:
        with _told(self.name, "read"):
            try:
                return (self._folder / blob_name(name)).read_bytes()
            except FileNotFoundError:
                raise BlobMissing(name) from None

    def remove(self, name: str) -> None:
        with _told(self.name, "removed"):
            (self._folder / blob_name(name)).unlink(missing_ok=True)

    def all(self) -> Iterator[Kept]:
        with _told(self.name, "listed"), contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False) and BLOB_NAME.fullmatch(entry.name):
                        yield Kept(entry.name, datetime.fromtimestamp(entry.stat().st_mtime, UTC))


@contextlib.contextmanager
def _told(provider: str, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Trouble(provider, f"the file could not be {what}: {error.strerror or type(error).__name__}") from error


def _write(copy: BinaryIO, content: Path | bytes) -> None:
    if isinstance(content, bytes):
        copy.write(content)
        return
    with content.open("rb") as source:
        shutil.copyfileobj(source, copy, 1 << 20)
