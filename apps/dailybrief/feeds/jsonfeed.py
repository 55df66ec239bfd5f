"""JSON Feed, versions 1 and 1.1."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from apps.dailybrief.feeds.entries import BadFeed, Document, Entry

VERSION = "https://jsonfeed.org/version/1"


def read(text: str, *, url: str) -> Document:
    """Parse the document from `url`, or raise BadFeed."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFeed("unreadable", f"the document is not valid JSON: {error}") from None
    if not isinstance(found, dict) or not _text(found, "version").startswith(VERSION):
        raise BadFeed("not_a_feed", "the document is JSON, but not JSON Feed")
    items = found.get("items")
    return Document(
        title=_text(found, "title"),
        link=_text(found, "home_page_url"),
        entries=tuple(_entry(item, url) for item in items if isinstance(item, dict)) if isinstance(items, list) else (),
    )


def _entry(item: dict[str, Any], url: str) -> Entry:
    plain = _text(item, "content_text")
    content = _text(item, "content_html") or html.escape(plain, quote=False)
    return Entry(
        id=_text(item, "id"),
        links=tuple(filter(None, (_text(item, key) for key in ("url", "external_url")))),
        title=_text(item, "title"),
        summary=_text(item, "summary"),
        content=content,
        author=", ".join(_authors(item)),
        source="",
        dates=tuple(_dates(item)),
        base=_text(item, "url") or url,
    )


def _authors(item: dict[str, Any]) -> Iterator[str]:
    authors = item.get("authors")
    for author in authors if isinstance(authors, list) else [item.get("author")]:
        if isinstance(author, dict) and (name := _text(author, "name")):
            yield name


def _dates(item: dict[str, Any]) -> Iterator[datetime]:
    for key in ("date_published", "date_modified"):
        try:
            date = datetime.fromisoformat(_text(item, key))
            yield (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            continue


def _text(found: dict[str, Any], key: str) -> str:
    value = found.get(key)
    # Some feeds have a number as id, although the specification does not allow it.
    return str(value).strip() if isinstance(value, str | int) else ""
