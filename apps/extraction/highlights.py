"""Highlights: a page's text in pieces, with the fields where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apps.extraction.tables import DocumentField

MOST = 60_000  # characters of one page that are shown


@dataclass(frozen=True)
class Piece:
    """Some text, and the number of the field whose value it is."""

    text: str
    field: int | None = None


@dataclass(frozen=True)
class Shown:
    """A page as it is shown; `left` are the characters that are not."""

    number: int
    pieces: list[Piece]
    left: int


def marked(number: int, text: str, fields: Sequence[DocumentField]) -> Shown:
    """The page cut where values stand: each field is sought after its name, from the last one on."""
    shown = text[:MOST]
    pieces: list[Piece] = []
    last = 0
    for start, end, field in sorted(_places(shown, (field for field in fields if field.page == number))):
        if start < last:
            continue  # it lies in another one
        pieces += [Piece(shown[last:start]), Piece(shown[start:end], field)]
        last = end
    pieces.append(Piece(shown[last:]))
    return Shown(number, [piece for piece in pieces if piece.text], len(text) - len(shown))


def _places(text: str, fields: Iterable[DocumentField]) -> Iterable[tuple[int, int, int]]:
    for field in fields:
        # White space may be more than one space where it was read.
        name, value = (r"\s+".join(map(re.escape, part.split())) for part in (field.name, field.value))
        if found := re.search(rf"{name}\s*:?\s*({value})", text, re.IGNORECASE):
            yield found.start(1), found.end(1), field.number
