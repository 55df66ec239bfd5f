"""Brief formats: a brief as Markdown, HTML and JSON feed.

Titles, sources and addresses come from strangers. Nothing of them is markup here: every text is escaped for the form it
goes into, characters that steer a terminal or turn the direction of writing are left out, and an address becomes a link
only if it is http or https.
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

TURNING = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C])
MARKS = re.compile(r"([\\`*_\[\]<>#|~&@$]|(?<=www)\.|:(?=//))", re.IGNORECASE)
AT_FIRST = re.compile(r"^(\d{0,9})([-+=.)])")  # what would begin a list or underline a heading
IN_ADDRESSES = "%/:?#[]@!$&'()*+,;=~"  # what `quote` must leave as it is


@dataclass(frozen=True)
class BriefArticle:
    title: str
    source: str
    url: str
    at: datetime


@dataclass(frozen=True)
class BriefEvent:
    """An event of a brief. `timeline` are those of its articles that brought something new, the earliest first."""

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
    """What happened on a day, by the clock of a time zone; the most important first."""

    day: date
    zone: ZoneInfo
    events: tuple[BriefEvent, ...]

    @property
    def title(self) -> str:
        return f"Daily brief of {self.day.isoformat()}"

    @property
    def outline(self) -> str:
        if not self.events:
            return "Nothing was reported."
        sources = {source for event in self.events for source in event.sources}
        articles = sum(len(event.articles) for event in self.events)
        return f"{_many(len(self.events), 'event')} in {_many(articles, 'article')} of {_many(len(sources), 'source')}."

    def clock(self, at: datetime) -> str:
        """The time of day; with the date if it is another day."""
        local = at.astimezone(self.zone)
        return f"{local:%H:%M}" if local.date() == self.day else f"{local:%Y-%m-%d %H:%M}"


def markdown(brief: Brief) -> str:
    lines = [f"# {brief.title}", "", brief.outline]
    for place, event in enumerate(brief.events, 1):
        lines += ["", f"## {place}. {_mark(event.title)}", "", _mark(event.sentence), ""]
        if len(event.timeline) > 1:
            lines += [f"- {brief.clock(moment.at)} {_mark(moment.title)}" for moment in event.timeline]
            lines += ["", "Reports:", ""]
        for article in event.articles:
            title, address = _mark(article.title), safe(article.url)
            shown = f"[{title}](<{address}>)" if address else title
            lines.append(f"- {brief.clock(article.at)} {_mark(article.source)}: {shown}")
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
        parts.append(f'<section id="event-{event.id}">\n<h2 dir="auto">{_text(event.title)}</h2>')
        parts.append(fragment(brief, event) + "\n</section>")
    return "\n".join([*parts, "</body>\n</html>"]) + "\n"


def json_feed(brief: Brief) -> str:
    """JSON Feed 1.1; the articles of an event are in its `_dailybrief`."""
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": brief.title,
        "description": brief.outline,
        "items": [_item(brief, event) for event in brief.events],
    }
    return json.dumps(feed, ensure_ascii=False, indent=1) + "\n"


def fragment(brief: Brief, event: BriefEvent) -> str:
    """An event without its title, as HTML."""
    parts = [f'<p dir="auto">{_text(event.sentence)}</p>']
    if len(event.timeline) > 1:
        moments = (f'<li dir="auto">{_time(brief, moment.at)} {_text(moment.title)}</li>' for moment in event.timeline)
        parts.append(f"<ol>{''.join(moments)}</ol>")
    reports = []
    for article in event.articles:
        title, address = _text(article.title), safe(article.url)
        shown = f'<a href="{escape(address)}" rel="noopener noreferrer nofollow">{title}</a>' if address else title
        reports.append(f'<li dir="auto">{_time(brief, article.at)} {_text(article.source)}: {shown}</li>')
    return "\n".join([*parts, f"<ul>{''.join(reports)}</ul>"])


def safe(url: str) -> str | None:
    """An address that may be linked to, with everything quoted that could end it; None for all but http and https."""
    plain = "".join(letter for letter in url.strip() if unicodedata.category(letter)[0] != "C")
    try:
        parts = urlsplit(plain)
    except ValueError:
        return None
    return quote(plain, safe=IN_ADDRESSES) if parts.scheme.lower() in ("http", "https") and parts.hostname else None


def plain(text: str) -> str:
    """A text in one line, without characters that are orders rather than letters."""
    letters = (" " if letter.isspace() else letter for letter in text.translate(TURNING))
    return " ".join("".join(letter for letter in letters if unicodedata.category(letter) not in ("Cc", "Cs")).split())


def _item(brief: Brief, event: BriefEvent) -> dict[str, object]:
    articles = [
        {"title": plain(one.title), "source": plain(one.source), "url": safe(one.url), "date": one.at.isoformat()}
        for one in event.articles
    ]
    found: dict[str, object] = {
        "id": f"{brief.day.isoformat()}/{brief.zone.key}/{event.id}",
        "title": plain(event.title),
        "summary": plain(event.sentence),
        "content_html": fragment(brief, event),
        "date_published": min(one.at for one in event.articles).isoformat(),
        "date_modified": max(one.at for one in event.articles).isoformat(),
        "authors": [{"name": plain(source)} for source in event.sources],
        "_dailybrief": {"articles": articles},
    }
    address = next((one["url"] for one in articles if one["url"]), None)
    return found | ({"external_url": address} if address else {})


def _mark(text: str) -> str:
    """A text for Markdown: what would be markup or become a link is escaped."""
    marked = AT_FIRST.sub(r"\1\\\2", MARKS.sub(r"\\\1", plain(text)))
    return marked.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")


def _text(text: str) -> str:
    return escape(plain(text))


def _time(brief: Brief, at: datetime) -> str:
    return f'<time datetime="{at.isoformat()}">{brief.clock(at)}</time>'


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
