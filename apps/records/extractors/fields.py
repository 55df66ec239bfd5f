"""Fields: one thing that a text says, and where it says so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class FoundField:
    """A field of a document.

    kind        date, amount, identifier, email, phone, person or section
    name        what it is there: due_date, total, iban …; the kind itself where nothing says so
    value       in one spelling: an ISO date, a decimal, an identifier without spaces
    unit        an amount's currency
    text        as it stands in the page's text, from `start` to `end`
    confidence  between 0 and 1
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
    """What the whole document says about how its parts are to be read."""

    kind: str
    currency: str | None
    day_first: bool | None


def line_before(text: str, at: int, *, most: int = 80) -> str:
    """What stands before a place in its line."""
    return text[max(text.rfind("\n", 0, at) + 1, at - most) : at]


def line_after(text: str, at: int, *, most: int = 80) -> str:
    """What stands after a place in its line."""
    end = text.find("\n", at)
    return text[at : min(len(text) if end < 0 else end, at + most)]


def words(*groups: str) -> re.Pattern[str]:
    """A pattern for any of these, in any case."""
    return re.compile("|".join(groups), re.IGNORECASE)


def first_that_fits(table: Iterable[tuple[str, re.Pattern[str]]], said: str) -> str | None:
    """The name beside the first pattern of a table that is found in what was said."""
    return next((name for name, pattern in table if pattern.search(said)), None)
