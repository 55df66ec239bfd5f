"""A bucket as an artifact store: Azure Blob Storage, S3 or Google Cloud Storage.

It uses the library obstore, which reads its options from the environment (AZURE_STORAGE_…, AWS_…, GOOGLE_…).
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from holdfast.artifacts.backends.base import PARTS, ArtifactStore, Measured
from holdfast.support.errors import ArtifactNotFound, ArtifactStoreUnavailable, InvalidSetting

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PATIENCE = timedelta(seconds=30)


class ObjectStorage(ArtifactStore):
    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore.exceptions import BaseError
            from obstore.store import from_url
        except ImportError:
            raise InvalidSetting(
                f"artifacts: {url} requires the package obstore; run pip install 'holdfast[objects]'"
            ) from None
        self.url = url
        self._obstore = obstore
        self._failures: tuple[type[Exception], ...] = (BaseError, OSError)
        try:
            self._store: ObjectStore = from_url(url, retry_config={"max_retries": 3, "retry_timeout": PATIENCE})
        except (BaseError, ValueError) as error:
            raise InvalidSetting(f"artifacts: {url} is not a valid object storage URL: {_first_line(error)}") from None

    def scratch(self, part: str) -> Path:
        return self._folder / part

    @cached_property
    def _folder(self) -> Path:
        folder = tempfile.mkdtemp(prefix="holdfast-parts-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def stage(self, part: str, content: Measured) -> None:
        # An interrupted upload leaves no visible object.
        with self._raise_unavailable(f"{part} can't be written"):
            self._obstore.put(self._store, f"{PARTS}/{part}", iter(content))

    def take(self, part: str, path: Path, content: Measured) -> None:
        self.stage(part, content)
        path.unlink()

    def publish(self, part: str, address: str) -> None:
        # Copy within the bucket; `discard` deletes the part after the commit.
        with self._raise_unavailable(f"{address} can't be written"):
            self._obstore.copy(self._store, f"{PARTS}/{part}", address)

    def discard(self, part: str) -> None:
        with contextlib.suppress(*self._failures):
            self._obstore.delete(self._store, f"{PARTS}/{part}")

    def parts(self, limit: int) -> list[str]:
        with self._raise_unavailable("the unfinished parts can't be listed"):
            page = next(iter(self._obstore.list(self._store, prefix=PARTS, chunk_size=limit)), [])
            return [str(each["path"]).rpartition("/")[2] for each in page]

    def size(self, address: str) -> int | None:
        with self._raise_unavailable(f"{address} can't be read"):
            try:
                return int(self._obstore.head(self._store, address)["size"])
            except FileNotFoundError:
                return None

    def open(self, address: str) -> BinaryIO:
        with self._raise_unavailable(f"{address} can't be read"):
            try:
                return io.BufferedReader(_Reader(self._obstore.open_reader(self._store, address)))
            except FileNotFoundError:
                raise ArtifactNotFound(f"{address} is not in {self.url}") from None

    def remove(self, addresses: Sequence[str]) -> None:
        with self._raise_unavailable("artifacts can't be removed"):
            try:
                self._obstore.delete(self._store, list(addresses))
            except FileNotFoundError:
                # A missing object stops the batch, so delete the objects one by one.
                for address in addresses:
                    with contextlib.suppress(FileNotFoundError):
                        self._obstore.delete(self._store, address)

    @contextlib.contextmanager
    def _raise_unavailable(self, what: str) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            # The full text of these errors is very long.
            raise ArtifactStoreUnavailable(f"{what}: {_first_line(error)}") from None


class _Reader(io.RawIOBase):
    """An object as an ordinary binary stream."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        block = self._file.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:500]
