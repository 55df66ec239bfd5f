"""HTML that others wrote, as plain text or made harmless."""

from __future__ import annotations

import html
import re

import nh3

from apps.dailybrief.feeds.decoding import without_controls

LONGEST_HTML = 100_000
TAG = re.compile(r"<[a-zA-Z/!][^>]*>")
BLOCK = re.compile(r"<(?=/?(?:p|div|br|li|ul|ol|h[1-6]|tr|td|th|table|blockquote|hr|section|article|figure)\b)", re.I)
SPACES = re.compile(r"\s+")
TAGS = {
    *(
        "a",
        "abbr",
        "b",
        "blockquote",
        "br",
        "cite",
        "code",
        "dd",
        "del",
        "dl",
        "dt",
        "em",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
    ),
    *("hr", "i", "ins", "li", "ol", "p", "pre", "q", "s", "small", "strong", "sub", "sup", "u", "ul"),
    *("table", "tbody", "td", "th", "thead", "tr"),
}
"""Text and its structure. No pictures and no frames: a reader of the brief should meet no third party."""
# What is between these is not text, and goes with them.
SILENT = {"script", "style", "noscript", "iframe", "object", "svg", "math", "template", "title", "textarea", "select"}


def plain(text: str, *, at_most: int) -> str:
    """The words without the markup, on one line."""
    text = text[:LONGEST_HTML]
    if TAG.search(text):
        text = nh3.clean(BLOCK.sub(" <", text), tags=set(), clean_content_tags=SILENT)
    words = SPACES.sub(" ", without_controls(html.unescape(text))).strip()
    return words if len(words) <= at_most else words[: at_most - 1].rstrip() + "…"


def harmless(text: str, *, base: str) -> str:
    """The text with its structure and links, and nothing that runs, loads or styles. Relative links begin at `base`."""
    return nh3.clean(
        without_controls(text[:LONGEST_HTML]),
        tags=TAGS,
        clean_content_tags=SILENT,
        attributes={"a": {"href", "title"}},
        url_schemes={"http", "https", "mailto"},
        url_relative=("rewrite_with_base", base),
        link_rel="noopener noreferrer nofollow",
    ).strip()
