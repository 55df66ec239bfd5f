"""Pages: a bounded part of a list, with the cursor of the next part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from holdfast.values.fields import described

T = TypeVar("T")


@described
@dataclass(frozen=True, kw_only=True)
class Page(Generic[T]):
    """A part of a list, in the order of the list."""

    items: tuple[T, ...]
    next: str | None
    """The cursor of the next page; null on the last page."""

    @classmethod
    def of(cls, items: Sequence[T], *, limit: int, cursor: Callable[[T], str]) -> Page[T]:
        """Return a page of at most `limit` items. If it is full, `next` is the cursor of its last item."""
        return Page(items=tuple(items), next=cursor(items[-1]) if len(items) == limit else None)

    @classmethod
    def whole(cls, items: Iterable[T]) -> Page[T]:
        """Return a page with all items of a short list."""
        return Page(items=tuple(items), next=None)


@described
@dataclass(frozen=True, kw_only=True)
class SearchPage(Page[T]):
    """Some of the matching runs, the newest first.

    A page may have few runs, or none, and still have a next page: one search examines at most 10,000 runs.
    """

    searched: int
    """How many runs were examined."""
    until: datetime | None
    """How far back the search went: when the last examined run was submitted or ended."""
