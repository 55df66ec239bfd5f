"""XML feeds: RSS 0.9 to 2.0, RDF and Atom, with feedparser, which also reads what is broken."""

from __future__ import annotations

import html
import io
import re
from calendar import timegm
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import feedparser
from feedparser.mixin import _FeedParserMixin

from apps.dailybrief.feeds.entries import BadFeed, Document, Entry

# What may stand before the root element. A subset of a DOCTYPE may hold texts, comments and instructions of its own.
PROLOG = re.compile(
    r"""<\?.*?\?> | <!--.*?-->
    | <!DOCTYPE (?: [^\[>"'] | "[^"]*" | '[^']*' )*+
      (?: \[ (?: <!--.*?--> | <\?.*?\?> | "[^"]*" | '[^']*' | [^\]"'] )*+ \] \s* )?+ >""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
MARKUP = re.compile(r"<[\w!?]")
ROOT = re.compile(r"<(?P<name>\w[^\s/>]*)")
# An id is a name. feedparser would make an address of `17`, where nothing is.
_FeedParserMixin.can_be_relative_uri.discard("id")


def read(text: str, *, url: str) -> Document:
    """The document at `url`; or BadFeed."""
    document, root = _from_root(text)
    # Bytes in a stream: of a string feedparser would think that it may be an address or the name of a file. It is told
    # what we know of the encoding, and need not clean the HTML, which is done later for all formats alike.
    found = feedparser.parse(
        io.BytesIO(document.encode()),
        response_headers={"content-type": "application/xml; charset=utf-8", "content-location": url},
        resolve_relative_uris=False,
        sanitize_html=False,
    )
    if not found.entries:
        if not found.get("version"):
            raise BadFeed("not_a_feed", "it is neither RSS nor Atom nor JSON Feed")
        # A fault in its text (an HTML entity, a bare &) costs nothing; but one that is cut off may have had entries.
        if found.bozo and not re.search(rf"</{re.escape(root)}\s*>", document):
            raise BadFeed("unreadable", f"it can't be read: {str(found.get('bozo_exception'))[:200]}")
    return Document(
        title=_text(found.feed, "title"),
        link=_text(found.feed, "link"),
        entries=tuple(_entry(entry, url) for entry in found.entries),
    )


def _from_root(text: str) -> tuple[str, str]:
    """The document from its root element on, and that element's name.

    What comes before it is left out: there, and only there, a document may declare entities.
    """
    at = 0
    while begun := MARKUP.search(text, at):
        skipped = PROLOG.match(text, begun.start())
        if skipped is None:
            break  # the root; or something that does not end, and the root is the first element after it
        at = skipped.end()
    root = ROOT.search(text, at)
    return (text[root.start() :], root["name"]) if root else (text, "")


def _entry(entry: dict[str, Any], url: str) -> Entry:
    content = _content(entry)
    source = _value(entry, "source")
    return Entry(
        id=_text(entry, "id"),
        links=tuple(_links(entry)),
        substitutes=tuple(_hrefs(entry, "self", "enclosure")),
        title=_text(entry, "title"),
        summary=_text(entry, "summary"),
        content=_marked_up(content),
        author=_text(entry, "author"),
        source=_text(source, "title") if isinstance(source, dict) else "",
        dates=tuple(_dates(entry)),
        base=_text(content, "base") or url,
    )


def _links(entry: dict[str, Any]) -> Iterator[str]:
    """Where it can be read: its `alternate` links, the one that feedparser chooses first."""
    # The first is the publisher's own address, where a service that counts clicks has put itself in between.
    yield _text(entry, "feedburner_origlink")
    alternates = list(_hrefs(entry, "alternate"))
    if (chosen := _text(entry, "link")) in alternates:  # else feedparser has taken the id for one
        yield chosen
    yield from alternates


def _hrefs(entry: dict[str, Any], *rels: str) -> Iterator[str]:
    links = _value(entry, "links") or ()
    for rel in rels:
        yield from (_text(link, "href") for link in links if _text(link, "rel") == rel)


def _content(entry: dict[str, Any]) -> dict[str, Any]:
    """The whole text if the feed has it, else the summary; the form with markup before the one without."""
    found: list[dict[str, Any]] = [*(_value(entry, "content") or ()), _value(entry, "summary_detail") or {}]
    return next(
        (content for content in found if "html" in _text(content, "type") and _text(content, "value")), found[0]
    )


def _marked_up(content: dict[str, Any]) -> str:
    text = _text(content, "value")
    return text if "html" in _text(content, "type") else html.escape(text, quote=False)


def _dates(entry: dict[str, Any]) -> Iterator[datetime]:
    for key in ("published_parsed", "created_parsed", "updated_parsed"):
        try:
            yield datetime.fromtimestamp(timegm(_value(entry, key)), UTC)
        except (TypeError, ValueError, OverflowError, OSError):
            continue


def _value(found: dict[str, Any], key: str) -> Any:
    # Not by the dictionary's own `get`, which would answer for another key.
    return dict.get(found, key)


def _text(found: dict[str, Any], key: str) -> str:
    value = dict.get(found, key)
    return value.strip() if isinstance(value, str) else ""
