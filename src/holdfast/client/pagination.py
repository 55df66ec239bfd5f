"""Pages: a server gives at most 200 of anything at once; who wants more gets it page by page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from holdfast.values.pages import Page

T = TypeVar("T")

MOST = 200


def pages(read: Callable[[str | None, int], Page[T]], *, limit: int, first: str | None) -> list[T]:
    """Up to `limit` items of the pages that `read(after, limit)` gives, going on by their `next`."""
    found: list[T] = []
    last = first
    while True:
        # What can't be a limit is sent as it is, for the server to refuse.
        page = read(last, min(limit - len(found), MOST))
        found += page.items
        last = page.next
        if last is None or len(found) >= limit:
            return found
