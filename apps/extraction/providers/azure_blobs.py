"""Azure Blob Storage, by its official SDK."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import ContainerClient

from apps.extraction.providers import BlobMissing, Kept, Trouble, blob_name


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
                self._container.upload_blob(blob_name(name), source, overwrite=True)

    def get(self, name: str) -> bytes:
        with _told(self.name):
            try:
                return bytes(self._container.download_blob(blob_name(name)).readall())
            except ResourceNotFoundError:
                raise BlobMissing(name) from None

    def remove(self, name: str) -> None:
        with _told(self.name), contextlib.suppress(ResourceNotFoundError):
            self._container.delete_blob(blob_name(name))

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
