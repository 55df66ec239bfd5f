"""Providers: the three services that extraction stands on, each behind a small protocol, chosen by settings.

    Blobs        keep a document's bytes              a folder | Azure Blob Storage
    Analyser     read a document                      this machine | Azure Document Intelligence
    Embedder     make vectors of passages             a model from a wheel | OpenAI | Azure OpenAI

What goes wrong with one is a Trouble, which says whether trying again may help, and when.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol


class Trouble(Exception):
    """A service failed, was too slow, or asked us to wait (`after`)."""

    def __init__(self, provider: str, said: str, *, after: timedelta | None = None, throttled: bool = False) -> None:
        super().__init__(f"{provider}: {said}")
        self.provider, self.after, self.throttled = provider, after, throttled


class Unreadable(Exception):
    """The document itself is the reason: trying again is of no use. `reason` is a stable word."""

    def __init__(self, reason: str, said: str) -> None:
        super().__init__(said)
        self.reason = reason


class BlobMissing(Exception):
    """No file is kept under that name."""


BLOB_NAME = re.compile(r"[0-9a-z]{8,64}")


def blob_name(name: str) -> str:
    """Names of files are ours, never a user's: an id, and nothing else."""
    if not BLOB_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a blob")
    return name


@dataclass(frozen=True)
class Kept:
    """A file that is kept, and since when."""

    name: str
    at: datetime


class Blobs(Protocol):
    """Files by name. Putting one again replaces it; removing one that is not there is fine."""

    name: str

    def put(self, name: str, path: Path) -> None: ...
    def get(self, name: str) -> bytes:
        """All of it, or BlobMissing."""
        ...

    def remove(self, name: str) -> None: ...
    def all(self) -> Sequence[Kept]: ...


@dataclass(frozen=True, kw_only=True)
class Cell:
    row: int
    column: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table as it stands on a page; what spans several cells stands in the first."""

    page: int
    rows: int
    columns: int
    cells: list[Cell]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A name and the value that stands beside it."""

    page: int
    name: str
    value: str
    confidence: float


@dataclass(frozen=True, kw_only=True)
class Page:
    number: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """What a document says."""

    pages: list[Page]
    tables: list[Table] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """The service is still at it; ask again after a while."""

    after: timedelta


class Analyser(Protocol):
    """Reads documents in two steps: what was started is paid for, and can be asked for its result by anyone."""

    name: str

    def start(self, document: bytes) -> str:
        """Begin to read it; where the result will be."""
        ...

    def result(self, place: str, document: bytes) -> Analysis | Unfinished:
        """What was read, or that it takes longer."""
        ...


class Embedder(Protocol):
    name: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of length one for each text."""
        ...
