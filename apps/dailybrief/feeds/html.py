"""HTML from feeds: converted to plain text, or sanitised."""

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
"""Allowed elements: text and its structure. No images or frames, so that readers load nothing from third parties."""
# Elements that are removed together with their content.
DROPPED = {"script", "style", "noscript", "iframe", "object", "svg", "math", "template", "title", "textarea", "select"}


def plain(text: str, *, at_most: int) -> str:
    """The text without markup, on one line, shortened to `at_most` characters."""
    text = text[:LONGEST_HTML]
    if TAG.search(text):
        text = nh3.clean(BLOCK.sub(" <", text), tags=set(), clean_content_tags=DROPPED)
    words = SPACES.sub(" ", without_controls(html.unescape(text))).strip()
    return words if len(words) <= at_most else words[: at_most - 1].rstrip() + "…"


def sanitise(text: str, *, base: str) -> str:
    """The HTML without scripts, styles and external resources. Relative links are resolved against `base`."""
    return nh3.clean(
        without_controls(text[:LONGEST_HTML]),
        tags=TAGS,
        clean_content_tags=DROPPED,
        attributes={"a": {"href", "title"}},
        url_schemes={"http", "https", "mailto"},
        url_relative=("rewrite_with_base", base),
        link_rel="noopener noreferrer nofollow",
    ).strip()
