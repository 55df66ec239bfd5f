"""Brief formats: a brief as Markdown, HTML and JSON feed.

Titles, sources and URLs come from feeds and are not trusted. Every text is escaped for its output format, control
characters and characters that change the text direction are removed, and only http and https URLs become links.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime
from html import escape
from urllib.parse import quote, urlsplit
from zoneinfo import ZoneInfo

DIRECTION_MARKS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])
MARKUP = re.compile(r"([\\`*_\[\]<>#|~&@$]|(?<=www)\.|:(?=//))", re.IGNORECASE)
LINE_START = re.compile(r"^(\d{0,9})([-+=.)])")  # would start a list or underline a heading
URL_SAFE = "%/:?#[]@!$&'()*+,;=~"  # characters that `quote` must leave as they are


@dataclass(frozen=True)
class BriefArticle:
    title: str
    source: str
    url: str
    at: datetime


@dataclass(frozen=True)
class BriefEvent:
    """An event of a brief. `timeline` has the articles that reported something new, the earliest first."""

    id: int
    title: str
    sentence: str
    articles: tuple[BriefArticle, ...]
    timeline: tuple[BriefArticle, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(article.source for article in self.articles))


@dataclass(frozen=True)
class Brief:
    """The events of a day in a time zone, the most important first."""

    day: date
    zone: ZoneInfo
    events: tuple[BriefEvent, ...]

    @property
    def title(self) -> str:
        return f"Daily brief of {self.day.isoformat()}"

    @property
    def outline(self) -> str:
        if not self.events:
            return "No events were reported."
        sources = {source for event in self.events for source in event.sources}
        articles = sum(len(event.articles) for event in self.events)
        counted = _count(len(self.events), "event"), _count(articles, "article"), _count(len(sources), "source")
        return "{} in {} from {}.".format(*counted)

    def clock(self, at: datetime) -> str:
        """The time of day, with the date if it is not the day of the brief."""
        local = at.astimezone(self.zone)
        return f"{local:%H:%M}" if local.date() == self.day else f"{local:%Y-%m-%d %H:%M}"


def markdown(brief: Brief) -> str:
    lines = [f"# {brief.title}", "", brief.outline]
    for position, event in enumerate(brief.events, 1):
        lines += ["", f"## {position}. {_escape_markdown(event.title)}", "", _escape_markdown(event.sentence), ""]
        if len(event.timeline) > 1:
            lines += [f"- {brief.clock(moment.at)} {_escape_markdown(moment.title)}" for moment in event.timeline]
            lines += ["", "Articles:", ""]
        for article in event.articles:
            title, url = _escape_markdown(article.title), safe_url(article.url)
            link = f"[{title}](<{url}>)" if url else title
            lines.append(f"- {brief.clock(article.at)} {_escape_markdown(article.source)}: {link}")
    return "\n".join(lines) + "\n"


def html(brief: Brief) -> str:
    title = escape(brief.title)
    parts = [
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark"></head>\n<body>',
        f"<h1>{title}</h1>\n<p>{escape(brief.outline)}</p>",
    ]
    for event in brief.events:
        parts.append(f'<section id="event-{event.id}">\n<h2 dir="auto">{_escape_html(event.title)}</h2>')
        parts.append(fragment(brief, event) + "\n</section>")
    return "\n".join([*parts, "</body>\n</html>"]) + "\n"


def json_feed(brief: Brief) -> str:
    """The brief as JSON Feed 1.1. The articles of an event are in its extension `_dailybrief`."""
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": brief.title,
        "description": brief.outline,
        "items": [_item(brief, event) for event in brief.events],
    }
    return json.dumps(feed, ensure_ascii=False, indent=1) + "\n"


def fragment(brief: Brief, event: BriefEvent) -> str:
    """An event as HTML, without its title."""
    parts = [f'<p dir="auto">{_escape_html(event.sentence)}</p>']
    if len(event.timeline) > 1:
        moments = (
            f'<li dir="auto">{_time(brief, moment.at)} {_escape_html(moment.title)}</li>' for moment in event.timeline
        )
        parts.append(f"<ol>{''.join(moments)}</ol>")
    articles = []
    for article in event.articles:
        title, url = _escape_html(article.title), safe_url(article.url)
        link = f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{title}</a>' if url else title
        articles.append(f'<li dir="auto">{_time(brief, article.at)} {_escape_html(article.source)}: {link}</li>')
    return "\n".join([*parts, f"<ul>{''.join(articles)}</ul>"])


def safe_url(url: str) -> str | None:
    """The URL, quoted so that it is safe in a link; None unless it is http or https."""
    plain = "".join(letter for letter in url.strip() if unicodedata.category(letter)[0] != "C")
    try:
        parts = urlsplit(plain)
    except ValueError:
        return None
    return quote(plain, safe=URL_SAFE) if parts.scheme.lower() in ("http", "https") and parts.hostname else None


def plain(text: str) -> str:
    """The text on one line, without control characters and direction marks."""
    letters = (" " if letter.isspace() else letter for letter in text.translate(DIRECTION_MARKS))
    return " ".join("".join(letter for letter in letters if unicodedata.category(letter) not in ("Cc", "Cs")).split())


def _item(brief: Brief, event: BriefEvent) -> dict[str, object]:
    articles = [
        {"title": plain(one.title), "source": plain(one.source), "url": safe_url(one.url), "date": one.at.isoformat()}
        for one in event.articles
    ]
    item: dict[str, object] = {
        "id": f"{brief.day.isoformat()}/{brief.zone.key}/{event.id}",
        "title": plain(event.title),
        "summary": plain(event.sentence),
        "content_html": fragment(brief, event),
        "date_published": min(one.at for one in event.articles).isoformat(),
        "date_modified": max(one.at for one in event.articles).isoformat(),
        "authors": [{"name": plain(source)} for source in event.sources],
        "_dailybrief": {"articles": articles},
    }
    url = next((one["url"] for one in articles if one["url"]), None)
    return item | ({"external_url": url} if url else {})


def _escape_markdown(text: str) -> str:
    """The text for Markdown, with everything escaped that would be markup or become a link."""
    escaped = LINE_START.sub(r"\1\\\2", MARKUP.sub(r"\\\1", plain(text)))
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")


def _escape_html(text: str) -> str:
    return escape(plain(text))


def _time(brief: Brief, at: datetime) -> str:
    return f'<time datetime="{at.isoformat()}">{brief.clock(at)}</time>'


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
