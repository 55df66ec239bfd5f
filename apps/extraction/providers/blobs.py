"""Blobs: a document's bytes in a folder of this machine, or in Azure Blob Storage."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import ContainerClient

from apps.extraction.providers import BlobMissing, Blobs, Kept, Trouble
from apps.extraction.settings import Settings

NAME = re.compile(r"[0-9a-z]{8,64}")
PART = "part-"


def open_blobs(settings: Settings) -> Blobs:
    if settings.blobs == "local":
        return LocalBlobs(settings.folder / "blobs")
    assert settings.azure_storage_connection is not None
    return AzureBlobs(
        settings.azure_storage_connection.get_secret_value(),
        settings.azure_storage_container,
        timeout=settings.request_timeout.total_seconds(),
    )


def _checked(name: str) -> str:
    """Names are ours, never a user's: an id, and nothing else."""
    if not NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a blob")
    return name


class LocalBlobs:
    """A folder; a file appears whole or not at all."""

    name = "blobs"

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, name: str, path: Path) -> None:
        there = self._folder / _checked(name)
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
            return (self._folder / _checked(name)).read_bytes()
        except FileNotFoundError:
            raise BlobMissing(name) from None
        except OSError as error:
            raise Trouble(self.name, f"the file could not be read: {error}") from error

    def remove(self, name: str) -> None:
        (self._folder / _checked(name)).unlink(missing_ok=True)

    def all(self) -> Sequence[Kept]:
        found = []
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._folder):
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file() and NAME.fullmatch(entry.name):
                        found.append(Kept(entry.name, datetime.fromtimestamp(entry.stat().st_mtime, UTC)))
        return found


class AzureBlobs:
    """A container, which is made when it is not there. Its requests may be repeated: putting twice is putting once."""

    name = "blobs"

    def __init__(self, connection: str, container: str, *, timeout: float) -> None:
        self._container = ContainerClient.from_connection_string(
            connection, container, retry_total=2, connection_timeout=timeout, read_timeout=timeout
        )
        self._there = False

    def put(self, name: str, path: Path) -> None:
        with _told(self.name):
            self._make()
            with path.open("rb") as source:
                self._container.upload_blob(_checked(name), source, overwrite=True)

    def get(self, name: str) -> bytes:
        with _told(self.name):
            try:
                return bytes(self._container.download_blob(_checked(name)).readall())
            except ResourceNotFoundError:
                raise BlobMissing(name) from None

    def remove(self, name: str) -> None:
        with _told(self.name), contextlib.suppress(ResourceNotFoundError):
            self._container.delete_blob(_checked(name))

    def all(self) -> Sequence[Kept]:
        with _told(self.name):
            self._make()
            return [Kept(found.name, found.last_modified) for found in self._container.list_blobs()]

    def _make(self) -> None:
        if not self._there:
            with contextlib.suppress(ResourceExistsError):
                self._container.create_container()
            self._there = True


@contextlib.contextmanager
def _told(provider: str) -> Iterator[None]:
    try:
        yield
    except HttpResponseError as error:
        raise Trouble(provider, f"HTTP {error.status_code}: {error.reason}") from error
    except AzureError as error:
        raise Trouble(provider, f"{type(error).__name__}: {str(error).splitlines()[0][:300]}") from error


def _flush(folder: Path) -> None:
    """Have the folder's new name on disk: who is answered may rely on it."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
