"""Extractors: what a text says: dates, people, amounts, identifiers, contacts and sections, each with its place."""

from __future__ import annotations

from collections.abc import Sequence

from apps.records.extractors import amounts, contacts, dates, identifiers, people, sections
from apps.records.extractors.fields import FoundField, Hints

# Who comes first has the place: what has a checksum or a form of its own before what is only likely.
FINDERS = (identifiers.find, contacts.find, dates.find, amounts.find, sections.find, people.find)
MOST = 5000  # of one document


def interpret(pages: Sequence[str], *, kind: str) -> list[FoundField]:
    """All that was found, in the order of the text; no two of one group overlap. `kind` is what the document is."""
    hints = Hints(kind=kind, currency=amounts.currency_of(pages), day_first=dates.day_first(pages))
    found: list[FoundField] = []
    taken = [_Taken() for _ in pages]
    for number, text in enumerate(pages, start=1):
        for find in FINDERS:
            for one in find(text, hints):
                # A section's title may hold other things; they do not dispute its place.
                if one.kind == "section" or taken[number - 1].take(one.start, one.end):
                    found.append(one.on(number))
    names = people.known(found)
    for number, text in enumerate(pages, start=1):
        again = people.again(text, names)
        found += [one.on(number) for one in again if taken[number - 1].take(one.start, one.end)]
    return sorted(found, key=lambda one: (one.page, one.start, one.end))[:MOST]


class _Taken:
    """The places of one page that are taken."""

    def __init__(self) -> None:
        self._at: set[int] = set()

    def take(self, start: int, end: int) -> bool:
        """Take a place; False if some of it is taken."""
        place = range(start, end)
        if not self._at.isdisjoint(place):
            return False
        self._at.update(place)
        return True
