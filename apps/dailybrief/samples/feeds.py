"""The feeds of the samples: RSS, Atom and JSON, with dates near now."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from xml.sax.saxutils import escape
from zoneinfo import ZoneInfo

from apps.dailybrief.samples.stories import PAPERS, SAMPLES, Paper, Sample

NEWEST = timedelta(minutes=50)  # how old the oldest article is
LATER = timedelta(minutes=10)  # what is `at` 2 appears so long after the start


@dataclass(frozen=True, kw_only=True)
class Answer:
    body: bytes
    content_type: str

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.body).hexdigest()[:20]}"'


@dataclass(frozen=True, kw_only=True)
class Entry:
    sample: Sample
    url: str
    published_at: datetime


class SampleFeeds:
    """What the newspapers publish around the time at which it was made; a new day does not begin in their past hour."""

    def __init__(self, now: datetime, zone: ZoneInfo) -> None:
        local = now.astimezone(zone)
        since_midnight = local - local.replace(hour=0, minute=0, second=0, microsecond=0)
        self._now, self._span = now, min(NEWEST, since_midnight)
        self._papers = {paper.key: paper for paper in PAPERS}

    def get(self, path: str, now: datetime) -> Answer | None:
        """The feed at a path, with what has been published until now, the newest first."""
        paper = self._papers.get(path.strip("/"))
        if paper is None:
            return None
        entries = [entry for entry in map(self._entry, SAMPLES) if entry.sample.paper == paper.key]
        published = [entry for entry in entries if entry.published_at <= now]
        published.sort(key=lambda entry: entry.published_at, reverse=True)
        return FORMS[paper.form](paper, published)

    def _entry(self, sample: Sample) -> Entry:
        beyond = max(0.0, sample.at - 1)
        published_at = self._now - self._span * (1 - min(sample.at, 1.0)) + LATER * beyond
        host = self._papers[sample.paper].host
        url = f"https://{host}/{self._now:%Y/%m/%d}/{sample.slug}"
        return Entry(sample=sample, url=url, published_at=published_at)


def rss(paper: Paper, entries: Sequence[Entry]) -> Answer:
    items = "".join(
        f"<item><title>{escape(one.sample.title)}</title><link>{one.url}?utm_source=rss</link>"
        f'<guid isPermaLink="false">{one.sample.slug}</guid><pubDate>{format_datetime(one.published_at)}</pubDate>'
        f"<description>{escape(f'<p>{one.sample.text}</p>')}</description></item>"
        for one in entries
    )
    head = f"<title>{escape(paper.name)}</title><link>https://{paper.host}/</link><description>News</description>"
    body = f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>{head}{items}</channel></rss>'
    return Answer(body=body.encode(), content_type="application/rss+xml; charset=utf-8")


def atom(paper: Paper, entries: Sequence[Entry]) -> Answer:
    items = "".join(
        f'<entry><title>{escape(one.sample.title)}</title><id>{one.url}</id><link href="{one.url}"/>'
        f"<updated>{one.published_at.isoformat()}</updated><published>{one.published_at.isoformat()}</published>"
        f'<summary type="text">{escape(one.sample.text)}</summary></entry>'
        for one in entries
    )
    newest = entries[0].published_at.isoformat() if entries else "1970-01-01T00:00:00Z"
    head = (
        f"<title>{escape(paper.name)}</title><id>https://{paper.host}/</id><updated>{newest}</updated>"
        f'<link href="https://{paper.host}/"/>'
    )
    body = f'<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom">{head}{items}</feed>'
    return Answer(body=body.encode(), content_type="application/atom+xml; charset=utf-8")


def json_feed(paper: Paper, entries: Sequence[Entry]) -> Answer:
    items = [
        {
            "id": one.url,
            "url": one.url,
            "title": one.sample.title,
            "content_text": one.sample.text,
            "date_published": one.published_at.isoformat(),
        }
        for one in entries
    ]
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": paper.name,
        "home_page_url": f"https://{paper.host}/",
        "items": items,
    }
    return Answer(body=json.dumps(document).encode(), content_type="application/feed+json")


FORMS = {"rss": rss, "atom": atom, "json": json_feed}
