"""Providers: the three services that extraction uses, each behind a small protocol and chosen by settings.

    Blobs        stores the bytes of a document       a folder | Azure Blob Storage
    Analyser     reads a document                     this machine | Azure Document Intelligence
    Embedder     makes vectors of passages            a model from a wheel | OpenAI | Azure OpenAI

A failure of a service is a ServiceError, which says when to try again and whether the service is reachable at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from apps.extraction.analysis import Analysis


class ServiceError(Exception):
    """A service failed, was too slow, or asked us to wait (`after`).

    `reachable` is True if the service works and only this request was refused or has to wait.
    """

    def __init__(self, provider: str, message: str, *, after: timedelta | None = None, reachable: bool = False) -> None:
        super().__init__(f"{provider}: {message}")
        self.provider, self.after, self.reachable = provider, after, reachable


class AnalysisLost(ServiceError):
    """The analysis will never have a result, because it failed, is unknown or does not end; another must be started."""

    def __init__(self, provider: str, message: str) -> None:
        super().__init__(provider, message, reachable=True)


def is_reachable(status: int | None) -> bool:
    """Whether this HTTP status means that the service works and only refuses or delays this request.

    401 and 403 don't mean this, because a service refuses every request with a wrong key.
    """
    return status is not None and 400 <= status < 500 and status not in (401, 403, 408)


class BlobMissing(Exception):
    """There is no blob with that name."""


BLOB_NAME = re.compile(r"[0-9a-z]{8,64}")


def blob_name(name: str) -> str:
    """Check the name of a blob. Names are made from ids, never from user input."""
    if not BLOB_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a valid blob name")
    return name


@dataclass(frozen=True)
class StoredBlob:
    """The name of a blob, and when it was stored."""

    name: str
    stored_at: datetime


class Blobs(Protocol):
    """Blobs by name. `put` replaces an existing blob; `remove` ignores a missing one."""

    name: str

    def put(self, name: str, content: Path | bytes) -> None: ...
    def get(self, name: str) -> bytes:
        """Return the content, or raise BlobMissing."""
        ...

    def remove(self, name: str) -> None: ...
    def all(self) -> Iterable[StoredBlob]:
        """List all blobs with a valid name."""
        ...


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """The analysis is not finished; ask again after a while."""

    after: timedelta


Source = Callable[[], bytes]
"""A function that fetches the bytes of a document, for providers that need them."""


class Analyser(Protocol):
    """Reads documents in two steps: it starts an analysis, which costs money, and gets the result, which is free."""

    name: str

    def start(self, document: Source) -> str:
        """Start an analysis and return the operation to ask for its result."""
        ...

    def result(self, operation: str, document: Source) -> Analysis | Unfinished:
        """Return the result, or Unfinished.

        Raise Unreadable if the document can't be read, and AnalysisLost if the operation will never have a result.
        """
        ...


class Embedder(Protocol):
    name: str

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector of length one for each text."""
        ...
