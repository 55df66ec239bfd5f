"""Parse: turns the bytes of a feed into articles that are safe to store and show.

The canonical URL identifies an article. An entry without a URL gets the URL of the feed with a fragment, which is a
hash of the entry's id or text and so is always the same.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

from apps.dailybrief.feeds import jsonfeed, xmlfeed
from apps.dailybrief.feeds.decoding import decode
from apps.dailybrief.feeds.entries import BadFeed, Document, Entry
from apps.dailybrief.feeds.html import plain, sanitise
from apps.dailybrief.feeds.urls import BadUrl, canonical

__all__ = ["Article", "BadFeed", "Parsed", "parse"]

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""An earlier date is considered wrong."""
ABSOLUTE = re.compile("https?://", re.IGNORECASE)
LONGEST_TITLE = 500
LONGEST_SUMMARY = 2000
LONGEST_NAME = 200
LONGEST_ID = 1000


@dataclass(frozen=True, kw_only=True)
class Article:
    """An article of a feed. All fields are plain text except `content_html`, which is sanitised."""

    url: str
    guid: str | None
    source: str
    title: str
    summary: str
    content_html: str
    author: str | None
    published_at: datetime


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """A parsed feed: its articles, the newest first, and the number of entries that were empty or repeated."""

    title: str
    site_url: str | None
    articles: tuple[Article, ...]
    unusable: int


def parse(body: bytes, *, url: str, content_type: str, at: datetime, at_most: int, feed: str = "") -> Parsed:
    """Parse the feed fetched from `url` at `at`, with at most `at_most` articles; raise BadFeed if it is not a feed.

    `feed` is the stored URL of the feed. It stays the same even if the target of its redirects changes.
    """
    text = decode(body, content_type=content_type).strip()
    if not text:
        raise BadFeed("not_a_feed", "the document is empty")
    document = (jsonfeed if text.startswith("{") else xmlfeed).read(text, url=url)
    articles: dict[str, Article] = {}
    for entry in document.entries:
        article = _article(entry, document, url=url, feed=feed or url, at=at)
        if article is not None:
            articles.setdefault(article.url, article)
    newest = sorted(articles.values(), key=lambda article: article.published_at, reverse=True)
    return Parsed(
        title=plain(document.title, at_most=LONGEST_NAME),
        site_url=_canonical((document.link,), base=url),
        articles=tuple(newest[:at_most]),
        unusable=len(document.entries) - len(articles),
    )


def _article(entry: Entry, document: Document, *, url: str, feed: str, at: datetime) -> Article | None:
    summary = plain(entry.summary or entry.content, at_most=LONGEST_SUMMARY)
    title = plain(entry.title, at_most=LONGEST_TITLE) or plain(summary, at_most=100)
    if not title:
        return None
    # An id may be a URL, too, but only if it is absolute.
    id_links = (entry.id,) if ABSOLUTE.match(entry.id) else ()
    links = (*entry.links, *id_links, *entry.substitutes)
    found = _canonical(links, base=url) or _generated_url(feed, entry.id or f"{title}\n{summary}")
    return Article(
        url=found,
        guid=plain(entry.id, at_most=LONGEST_ID) or None,
        source=_source(entry, document) or urlsplit(found).hostname or url,
        title=title,
        summary=summary,
        content_html=sanitise(entry.content, base=_canonical((entry.base,), base=url) or url),
        author=plain(entry.author, at_most=LONGEST_NAME) or None,
        published_at=_published(entry, at),
    )


def _source(entry: Entry, document: Document) -> str:
    return plain(entry.source, at_most=LONGEST_NAME) or plain(document.title, at_most=LONGEST_NAME)


def _canonical(links: tuple[str, ...], *, base: str) -> str | None:
    for link in links:
        try:
            if link:
                return canonical(link, base=base)
        except BadUrl:
            continue
    return None


def _generated_url(url: str, text: str) -> str:
    page = _canonical((url,), base=url) or url
    return f"{page}#{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def _published(entry: Entry, at: datetime) -> datetime:
    """The first plausible date. A future date is not used, because the article would count as new until then."""
    return next((min(date, at) for date in entry.dates if date >= EARLIEST), at)
