"""Highlights: split the text of a page into pieces, each with the fields that cover it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from apps.records.tables import Field

MAX_CHARACTERS = 60_000  # of one page


@dataclass(frozen=True)
class Piece:
    """Some text, and the fields that cover all of it; no field begins or ends inside."""

    text: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class HighlightedPage:
    """A page for display; `hidden` is the number of characters that are not shown."""

    number: int
    pieces: list[Piece]
    hidden: int


def highlight(number: int, text: str, fields: Sequence[Field]) -> HighlightedPage:
    """Split the text of a page at the start and end of each of its fields."""
    shown = text[:MAX_CHARACTERS]
    on_page = [field for field in fields if field.page == number and field.end <= len(shown)]
    borders = sorted({0, len(shown), *(field.start for field in on_page), *(field.end for field in on_page)})
    pieces, covering, upcoming = [], list[Field](), sorted(on_page, key=lambda field: field.start)
    for start, end in pairwise(borders):
        covering = [field for field in covering if field.end > start]
        while upcoming and upcoming[0].start <= start:
            covering.append(upcoming.pop(0))
        pieces.append(Piece(shown[start:end], tuple(covering)))
    return HighlightedPage(number, pieces, len(text) - len(shown))
