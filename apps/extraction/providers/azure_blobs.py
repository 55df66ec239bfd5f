"""Azure Blob Storage, by its official SDK."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import ContainerClient, ExponentialRetry

from apps.extraction.clean_text import first_line
from apps.extraction.providers import BLOB_NAME, BlobMissing, Kept, Trouble, blob_name, is_alive


class AzureBlobs:
    """A container of its own, made when it is not there. Requests may be repeated: putting twice is putting once."""

    name = "blobs"

    def __init__(self, connection: str, container: str, *, timeout: float) -> None:
        # Someone waits for an upload: one more try after a second, and then they are told.
        patience = ExponentialRetry(initial_backoff=1, increment_base=1, retry_total=1, random_jitter_range=0)
        self._container = ContainerClient.from_connection_string(
            connection, container, connection_timeout=timeout, read_timeout=timeout, retry_policy=patience
        )
        self._there = False

    def put(self, name: str, content: Path | bytes) -> None:
        with _told(self.name):
            self._make()
            if isinstance(content, bytes):
                self._container.upload_blob(blob_name(name), content, overwrite=True)
                return
            with content.open("rb") as source:
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

    def all(self) -> Iterator[Kept]:
        with _told(self.name):
            self._make()
            for found in self._container.list_blobs():
                if BLOB_NAME.fullmatch(found.name):
                    yield Kept(found.name, found.last_modified)

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
        code = error.status_code
        raise Trouble(provider, f"HTTP {code} {error.reason or ''}".strip(), alive=is_alive(code)) from error
    except AzureError as error:
        raise Trouble(provider, f"{type(error).__name__}: {first_line(error)}") from error
