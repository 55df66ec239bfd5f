"""The sample feeds in RSS, Atom and JSON, with articles of the last hour."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from xml.sax.saxutils import escape
from zoneinfo import ZoneInfo

from apps.dailybrief.samples.articles import ARTICLES, NEWSPAPERS, Article, Newspaper

OLDEST = timedelta(minutes=50)  # the age of an article with `at` 0 at the start
LATER = timedelta(minutes=10)  # an article with `at` 2 appears this long after the start


@dataclass(frozen=True, kw_only=True)
class Answer:
    body: bytes
    content_type: str

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:20]}"'


@dataclass(frozen=True, kw_only=True)
class Entry:
    article: Article
    url: str
    published_at: datetime


class SampleFeeds:
    """The feeds, with articles from before and after their creation. All earlier articles are from the same day."""

    def __init__(self, now: datetime, zone: ZoneInfo) -> None:
        local = now.astimezone(zone)
        since_midnight = local - local.replace(hour=0, minute=0, second=0, microsecond=0)
        self._now, self._span = now, min(OLDEST, since_midnight)
        self._newspapers = {newspaper.key: newspaper for newspaper in NEWSPAPERS}

    def get(self, path: str, now: datetime) -> Answer | None:
        """The feed at a path, with the articles published until `now`, the newest first."""
        newspaper = self._newspapers.get(path.strip("/"))
        if newspaper is None:
            return None
        entries = [entry for entry in map(self._entry, ARTICLES) if entry.article.newspaper == newspaper.key]
        published = [entry for entry in entries if entry.published_at <= now]
        published.sort(key=lambda entry: entry.published_at, reverse=True)
        return FORMATS[newspaper.format](newspaper, published)

    def _entry(self, article: Article) -> Entry:
        after_start = max(0.0, article.at - 1)
        published_at = self._now - self._span * (1 - min(article.at, 1.0)) + LATER * after_start
        host = self._newspapers[article.newspaper].host
        url = f"https://{host}/{self._now:%Y/%m/%d}/{article.slug}"
        return Entry(article=article, url=url, published_at=published_at)


def rss(newspaper: Newspaper, entries: Sequence[Entry]) -> Answer:
    items = "".join(
        f"<item><title>{escape(one.article.title)}</title><link>{one.url}?utm_source=rss</link>"
        f'<guid isPermaLink="false">{one.article.slug}</guid><pubDate>{format_datetime(one.published_at)}</pubDate>'
        f"<description>{escape(f'<p>{one.article.text}</p>')}</description></item>"
        for one in entries
    )
    head = (
        f"<title>{escape(newspaper.name)}</title><link>https://{newspaper.host}/</link><description>News</description>"
    )
    body = f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>{head}{items}</channel></rss>'
    return Answer(body=body.encode(), content_type="application/rss+xml; charset=utf-8")


def atom(newspaper: Newspaper, entries: Sequence[Entry]) -> Answer:
    items = "".join(
        f'<entry><title>{escape(one.article.title)}</title><id>{one.url}</id><link href="{one.url}"/>'
        f"<updated>{one.published_at.isoformat()}</updated><published>{one.published_at.isoformat()}</published>"
        f'<summary type="text">{escape(one.article.text)}</summary></entry>'
        for one in entries
    )
    newest = entries[0].published_at.isoformat() if entries else "1970-01-01T00:00:00Z"
    head = (
        f"<title>{escape(newspaper.name)}</title><id>https://{newspaper.host}/</id><updated>{newest}</updated>"
        f'<link href="https://{newspaper.host}/"/>'
    )
    body = f'<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom">{head}{items}</feed>'
    return Answer(body=body.encode(), content_type="application/atom+xml; charset=utf-8")


def json_feed(newspaper: Newspaper, entries: Sequence[Entry]) -> Answer:
    items = [
        {
            "id": one.url,
            "url": one.url,
            "title": one.article.title,
            "content_text": one.article.text,
            "date_published": one.published_at.isoformat(),
        }
        for one in entries
    ]
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": newspaper.name,
        "home_page_url": f"https://{newspaper.host}/",
        "items": items,
    }
    return Answer(body=json.dumps(document).encode(), content_type="application/feed+json")


FORMATS = {"rss": rss, "atom": atom, "json": json_feed}
