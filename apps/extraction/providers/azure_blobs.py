"""Azure blobs: store blobs in Azure Blob Storage, with the official SDK."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from azure.core.exceptions import AzureError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob import ContainerClient, ExponentialRetry

from apps.extraction.clean_text import first_line
from apps.extraction.providers import BLOB_NAME, BlobMissing, ServiceError, StoredBlob, blob_name, is_reachable


class AzureBlobs:
    """A container that only this database uses. It is created if it does not exist. All requests are idempotent."""

    name = "blobs"

    def __init__(self, connection: str, container: str, *, timeout: float) -> None:
        # A user waits for the upload: retry only once, after a second.
        retry_once = ExponentialRetry(initial_backoff=1, increment_base=1, retry_total=1, random_jitter_range=0)
        self._container = ContainerClient.from_connection_string(
            connection, container, connection_timeout=timeout, read_timeout=timeout, retry_policy=retry_once
        )
        self._exists = False

    def put(self, name: str, content: Path | bytes) -> None:
        with _service_errors(self.name):
            self._create_container()
            if isinstance(content, bytes):
                self._container.upload_blob(blob_name(name), content, overwrite=True)
                return
            with content.open("rb") as source:
                self._container.upload_blob(blob_name(name), source, overwrite=True)

    def get(self, name: str) -> bytes:
        with _service_errors(self.name):
            try:
                return bytes(self._container.download_blob(blob_name(name)).readall())
            except ResourceNotFoundError:
                raise BlobMissing(name) from None

    def remove(self, name: str) -> None:
        with _service_errors(self.name), contextlib.suppress(ResourceNotFoundError):
            self._container.delete_blob(blob_name(name))

    def all(self) -> Iterator[StoredBlob]:
        with _service_errors(self.name):
            self._create_container()
            for blob in self._container.list_blobs():
                if BLOB_NAME.fullmatch(blob.name):
                    yield StoredBlob(blob.name, blob.last_modified)

    def _create_container(self) -> None:
        if not self._exists:
            with contextlib.suppress(ResourceExistsError):
                self._container.create_container()
            self._exists = True


@contextlib.contextmanager
def _service_errors(provider: str) -> Iterator[None]:
    """Raise every error of the SDK as a ServiceError."""
    try:
        yield
    except HttpResponseError as error:
        code = error.status_code
        raise ServiceError(
            provider, f"HTTP {code} {error.reason or ''}".strip(), reachable=is_reachable(code)
        ) from error
    except AzureError as error:
        raise ServiceError(provider, f"{type(error).__name__}: {first_line(error)}") from error
