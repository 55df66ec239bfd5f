"""Highlights: a page's text in pieces, each with the fields that it lies in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from apps.records.tables import Field

MOST = 60_000  # characters of one page that are shown


@dataclass(frozen=True)
class Piece:
    """Some text without a border of a field in it, and the fields that it lies in."""

    text: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Shown:
    """A page as it is shown; `left` are the characters that are not."""

    number: int
    pieces: list[Piece]
    left: int


def marked(number: int, text: str, fields: Sequence[Field]) -> Shown:
    """The page cut at the borders of its fields."""
    shown = text[:MOST]
    here = [field for field in fields if field.page == number and field.end <= len(shown)]
    borders = sorted({0, len(shown), *(field.start for field in here), *(field.end for field in here)})
    pieces, open_, left = [], list[Field](), sorted(here, key=lambda field: field.start)
    for start, end in pairwise(borders):
        open_ = [field for field in open_ if field.end > start]
        while left and left[0].start <= start:
            open_.append(left.pop(0))
        pieces.append(Piece(shown[start:end], tuple(open_)))
    return Shown(number, pieces, len(text) - len(shown))
