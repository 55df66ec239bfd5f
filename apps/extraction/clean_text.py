"""Clean text: make text from documents safe for every database and page."""

from __future__ import annotations

import re

# PostgreSQL refuses NUL and surrogates; the others control a terminal or change the direction of the text.
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")


def clean(text: str) -> str:
    """Normalise line ends, and remove characters that can't be stored or shown."""
    return _INVISIBLE.sub("", _SURROGATES.sub("\ufffd", _LINE_ENDS.sub("\n", text)))


def plain(text: str, most: int) -> str:
    """Return the printable text as one line of at most `most` characters."""
    return " ".join("".join(letter for letter in text if letter.isprintable() or letter.isspace()).split())[:most]


def first_line(text: object, most: int = 300) -> str:
    """Return the first line of a text, such as an error message."""
    lines = str(text).strip().splitlines()
    return plain(lines[0], most) if lines else ""
