"""Extractors: find dates, people, amounts, identifiers, contacts and sections in a text, each with its position."""

from __future__ import annotations

from collections.abc import Sequence

from apps.records.extractors import amounts, contacts, dates, identifiers, people, sections
from apps.records.extractors.fields import FoundField, Hints

# If two finders find overlapping text, the earlier finder wins, so the most reliable ones come first.
FINDERS = (identifiers.find, contacts.find, dates.find, amounts.find, sections.find, people.find)
MAX_FIELDS = 5000  # of one document


def interpret(pages: Sequence[str], *, kind: str) -> list[FoundField]:
    """Return the fields of a document of class `kind`, in the order of the text.

    Fields do not overlap, except that a section title may contain other fields.
    """
    hints = Hints(kind=kind, currency=amounts.currency_of(pages), day_first=dates.day_first(pages))
    found: list[FoundField] = []
    used = [_UsedText() for _ in pages]
    for number, text in enumerate(pages, start=1):
        for find in FINDERS:
            for field in find(text, hints):
                if field.kind == "section" or used[number - 1].take(field.start, field.end):
                    found.append(field.on(number))
    names = people.full_names(found)
    for number, text in enumerate(pages, start=1):
        repeated = people.find_names(text, names)
        found += [field.on(number) for field in repeated if used[number - 1].take(field.start, field.end)]
    return sorted(found, key=lambda field: (field.page, field.start, field.end))[:MAX_FIELDS]


class _UsedText:
    """The positions of one page that already belong to a field."""

    def __init__(self) -> None:
        self._positions: set[int] = set()

    def take(self, start: int, end: int) -> bool:
        """Mark a range as used; return False if a part of it is already used."""
        wanted = range(start, end)
        if not self._positions.isdisjoint(wanted):
            return False
        self._positions.update(wanted)
        return True
