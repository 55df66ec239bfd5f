"""Clean text: text from documents, made fit for every database and page."""

from __future__ import annotations

import re

# What PostgreSQL refuses (NUL, halves of characters), what only steers a terminal, and what turns a line's direction.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_HALVES = re.compile("[\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")


def clean(text: str) -> str:
    """Lines of text without what can't be kept or seen."""
    return _UNSEEN.sub("", _HALVES.sub("\ufffd", _LINE_ENDS.sub("\n", text)))


def plain(text: str, most: int) -> str:
    """One line of what can be seen, of at most so many characters."""
    return " ".join("".join(letter for letter in text if letter.isprintable() or letter.isspace()).split())[:most]


def first_line(text: object, most: int = 300) -> str:
    """What an error says, without the rest of it; nothing of one that says nothing."""
    lines = str(text).strip().splitlines()
    return plain(lines[0], most) if lines else ""
