"""Pages: a server gives at most 200 of anything at once; who wants more gets it page by page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

MOST = 200


def pages(
    page: Callable[[str | None, int], dict[str, Any]], name: str, *, limit: int, first: str | None
) -> list[dict[str, Any]]:
    """Up to `limit` of what `page(last, most)` gives under this name, going on by its `next`."""
    found: list[dict[str, Any]] = []
    last = first
    while True:
        # What can't be a limit is sent as it is, for the server to refuse.
        wanted = min(limit - len(found), MOST)
        said = page(last, wanted)
        found += said[name]
        last = said["next"]
        if last is None or len(found) >= limit:
            return found
