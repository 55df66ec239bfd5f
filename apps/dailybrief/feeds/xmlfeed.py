"""XML feeds: RSS 0.9 to 2.0, RDF and Atom, parsed with feedparser, which also accepts broken XML."""

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

# Markup that may precede the root element. The internal subset of a DOCTYPE may contain strings and comments.
PROLOG = re.compile(
    r"""<\?.*?\?> | <!--.*?-->
    | <!DOCTYPE (?: [^\[>"'] | "[^"]*" | '[^']*' )*+
      (?: \[ (?: <!--.*?--> | <\?.*?\?> | "[^"]*" | '[^']*' | [^\]"'] )*+ \] \s* )?+ >""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
MARKUP = re.compile(r"<[\w!?]")
ROOT = re.compile(r"<(?P<name>\w[^\s/>]*)")
# Keep ids as they are: feedparser would resolve an id such as `17` to a URL that does not exist.
_FeedParserMixin.can_be_relative_uri.discard("id")


def read(text: str, *, url: str) -> Document:
    """Parse the document from `url`, or raise BadFeed."""
    document, root = _from_root(text)
    # Pass a byte stream: feedparser would open a string as a URL or a file. The encoding is known, and HTML is
    # sanitised later, in the same way for all formats.
    found = feedparser.parse(
        io.BytesIO(document.encode()),
        response_headers={"content-type": "application/xml; charset=utf-8", "content-location": url},
        resolve_relative_uris=False,
        sanitize_html=False,
    )
    if not found.entries:
        if not found.get("version"):
            raise BadFeed("not_a_feed", "the document is neither RSS nor Atom nor JSON Feed")
        # An error in the text (an HTML entity, a bare &) does not matter. A truncated feed may have lost its entries.
        if found.bozo and not re.search(rf"</{re.escape(root)}\s*>", document):
            raise BadFeed("unreadable", f"the document can't be parsed: {str(found.get('bozo_exception'))[:200]}")
    return Document(
        title=_text(found.feed, "title"),
        link=_text(found.feed, "link"),
        entries=tuple(_entry(entry, url) for entry in found.entries),
    )


def _from_root(text: str) -> tuple[str, str]:
    """The document from its root element on, and the name of that element.

    The prolog is dropped, because it is the only part of a document that can declare entities.
    """
    at = 0
    while markup := MARKUP.search(text, at):
        skipped = PROLOG.match(text, markup.start())
        if skipped is None:
            break  # the root element begins here or, if the prolog is not closed, after this position
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
    """The URLs of the article: its `alternate` links, with feedparser's choice first."""
    # FeedBurner replaces the links by links to its click counter, and keeps the publisher's own URL here.
    yield _text(entry, "feedburner_origlink")
    alternates = list(_hrefs(entry, "alternate"))
    if (chosen := _text(entry, "link")) in alternates:  # otherwise feedparser took the id for a link
        yield chosen
    yield from alternates


def _hrefs(entry: dict[str, Any], *rels: str) -> Iterator[str]:
    links = _value(entry, "links") or ()
    for rel in rels:
        yield from (_text(link, "href") for link in links if _text(link, "rel") == rel)


def _content(entry: dict[str, Any]) -> dict[str, Any]:
    """The full text if the feed has it, otherwise the summary; HTML is preferred to plain text."""
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
    # feedparser's own `get` falls back to other keys.
    return dict.get(found, key)


def _text(found: dict[str, Any], key: str) -> str:
    value = dict.get(found, key)
    return value.strip() if isinstance(value, str) else ""
