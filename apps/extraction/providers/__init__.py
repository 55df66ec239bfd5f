"""Providers: the three services that extraction stands on, each behind a small protocol, chosen by settings.

    Blobs        keep a document's bytes              a folder | Azure Blob Storage
    Analyser     read a document                      this machine | Azure Document Intelligence
    Embedder     make vectors of passages             a model from a wheel | OpenAI | Azure OpenAI

What goes wrong with one is a Trouble, which says when to try again, and whether the service is there at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from apps.extraction.analysis import Analysis


class Trouble(Exception):
    """A service failed, was too slow, or asked us to wait (`after`). `alive`: it answered, and would answer others."""

    def __init__(self, provider: str, said: str, *, after: timedelta | None = None, alive: bool = False) -> None:
        super().__init__(f"{provider}: {said}")
        self.provider, self.after, self.alive = provider, after, alive


class Lost(Trouble):
    """An analysis that was begun never gives a result: it has failed, is not there, or does not end. Begin another."""

    def __init__(self, provider: str, said: str) -> None:
        super().__init__(provider, said, alive=True)


def is_alive(status: int | None) -> bool:
    """Whether a service that answers like this is there: it asks to wait, or refuses this one request.

    A key that is refused is refused for every request.
    """
    return status is not None and 400 <= status < 500 and status not in (401, 403, 408)


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

    def put(self, name: str, content: Path | bytes) -> None: ...
    def get(self, name: str) -> bytes:
        """All of it, or BlobMissing."""
        ...

    def remove(self, name: str) -> None: ...
    def all(self) -> Iterable[Kept]:
        """Every file with a name of ours."""
        ...


@dataclass(frozen=True, kw_only=True)
class Unfinished:
    """The service is still at it; ask again after a while."""

    after: timedelta


Source = Callable[[], bytes]
"""Fetches a document: only who needs its bytes asks for them."""


class Analyser(Protocol):
    """Reads documents in two steps: what was started is paid for, and can be asked for its result by anyone."""

    name: str

    def start(self, document: Source) -> str:
        """Begin to read it; where the result will be."""
        ...

    def result(self, place: str, document: Source) -> Analysis | Unfinished:
        """What was read, or that it takes longer; Unreadable if the document is the reason, Lost if this place will
        never have it."""
        ...


class Embedder(Protocol):
    name: str

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector of length one for each text."""
        ...
