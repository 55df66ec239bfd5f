"""Pages: a bounded part of a list, and where the next part begins."""

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
    """Some of a list, in its order."""

    items: tuple[T, ...]
    next: str | None
    """Where the next page begins; null on the last one."""

    @classmethod
    def of(cls, items: Sequence[T], *, limit: int, cursor: Callable[[T], str]) -> Page[T]:
        """A page of at most `limit` items; the cursor of its last item leads on, if it is full."""
        return Page(items=tuple(items), next=cursor(items[-1]) if len(items) == limit else None)

    @classmethod
    def whole(cls, items: Iterable[T]) -> Page[T]:
        """All of a list that is short by nature."""
        return Page(items=tuple(items), next=None)


@described
@dataclass(frozen=True, kw_only=True)
class SearchPage(Page[T]):
    """Some of the runs that match, the newest first.

    A page may have few runs, or none, and still have a next one: at most 10,000 runs are looked at for it.
    """

    searched: int
    """How many runs were looked at."""
    until: datetime | None
    """How far back: when the last of them was submitted, or ended."""
