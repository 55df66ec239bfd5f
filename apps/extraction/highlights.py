"""Highlights: split the text of a page into pieces, some of which are the values of fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apps.extraction.tables import DocumentField

MAX_CHARACTERS = 60_000  # of one page


@dataclass(frozen=True)
class Piece:
    """Some text; if it is the value of a field, `field` is the number of that field."""

    text: str
    field: int | None = None


@dataclass(frozen=True)
class HighlightedPage:
    """A page for display; `hidden` is the number of characters that are not shown."""

    number: int
    pieces: list[Piece]
    hidden: int


def highlight(number: int, text: str, fields: Sequence[DocumentField]) -> HighlightedPage:
    """Split the text of a page at the values of its fields; a value counts only directly after its name."""
    shown = text[:MAX_CHARACTERS]
    pieces: list[Piece] = []
    last = 0
    for start, end, field in sorted(_positions(shown, (field for field in fields if field.page == number))):
        if start < last:
            continue  # inside another field
        pieces += [Piece(shown[last:start]), Piece(shown[start:end], field)]
        last = end
    pieces.append(Piece(shown[last:]))
    return HighlightedPage(number, [piece for piece in pieces if piece.text], len(text) - len(shown))


def _positions(text: str, fields: Iterable[DocumentField]) -> Iterable[tuple[int, int, int]]:
    for field in fields:
        # In the text, the words may be separated by more than one space.
        name, value = (r"\s+".join(map(re.escape, part.split())) for part in (field.name, field.value))
        if match := re.search(rf"{name}\s*:?\s*({value})", text, re.IGNORECASE):
            yield match.start(1), match.end(1), field.number
