"""Fields: a value found in a text with its position, and helpers for the finders."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class FoundField:
    """A field of a document.

    kind        date, amount, identifier, email, phone, person or section
    name        its meaning in the document: due_date, total, iban …; the same as `kind` if unknown
    value       normalised: an ISO date, a decimal, an identifier without spaces
    unit        the currency of an amount
    text        as written on the page, from `start` to `end`
    confidence  from 0 to 1
    """

    kind: str
    name: str
    value: str
    unit: str | None = None
    text: str
    page: int = 1
    start: int
    end: int
    confidence: float

    def on(self, page: int) -> FoundField:
        return replace(self, page=page)


@dataclass(frozen=True, kw_only=True)
class Hints:
    """Facts about the whole document that help to read its parts."""

    kind: str
    currency: str | None
    day_first: bool | None


def line_before(text: str, at: int, *, most: int = 80) -> str:
    """Return the text before a position in the same line, at most `most` characters."""
    return text[max(text.rfind("\n", 0, at) + 1, at - most) : at]


def line_after(text: str, at: int, *, most: int = 80) -> str:
    """Return the text after a position in the same line, at most `most` characters."""
    end = text.find("\n", at)
    return text[at : min(len(text) if end < 0 else end, at + most)]


def any_of(*patterns: str) -> re.Pattern[str]:
    """Compile a pattern that matches any of these, ignoring case."""
    return re.compile("|".join(patterns), re.IGNORECASE)


def first_match(table: Iterable[tuple[str, re.Pattern[str]]], text: str) -> str | None:
    """Return the name of the first pattern in a table that occurs in the text."""
    return next((name for name, pattern in table if pattern.search(text)), None)
