"""Text fitting: text in a box that it never leaves: smaller if it must be, broken where it may be, cut at last.

The typefaces are FiraGO and Fira Mono from the wheel `pymupdf-fonts`, so that a slide is the same wherever it is drawn.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache

import pymupdf_fonts
from PIL import ImageDraw, ImageFont
from PIL.ImageFont import FreeTypeFont

LINE = 1.28
NO_LETTER = "\U0010ffff"
Colour = tuple[int, int, int]


class Face(Enum):
    """A typeface, by its name in the wheel."""

    PLAIN = "figo"
    HEAVY = "figbo"
    CODE = "fimo"


@dataclass(frozen=True)
class Box:
    """A place on a slide: left, top, width and height."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        return self.left + self.width

    @property
    def bottom(self) -> int:
        return self.top + self.height

    def holds(self, other: Box) -> bool:
        return (
            self.left <= other.left
            and self.top <= other.top
            and other.right <= self.right
            and other.bottom <= self.bottom
        )


@dataclass(frozen=True)
class FittedText:
    """Lines of one size that fit where they are to stand."""

    lines: tuple[str, ...]
    size: int
    face: Face = Face.PLAIN

    @property
    def line_height(self) -> int:
        return round(self.size * LINE)

    @property
    def height(self) -> int:
        return self.line_height * len(self.lines)

    @property
    def width(self) -> int:
        return max((width(line, self.size, self.face) for line in self.lines), default=0)


@lru_cache(maxsize=64)
def font(size: int, face: Face = Face.PLAIN) -> FreeTypeFont:
    # One way to lay letters out, whichever others this Pillow was built with.
    return ImageFont.truetype(io.BytesIO(_content(face)), size, layout_engine=ImageFont.Layout.BASIC)


@cache
def _content(face: Face) -> bytes:
    found: bytes = pymupdf_fonts.fontbuffers[face.value]()
    return found


@lru_cache(maxsize=10_000)
def width(text: str, size: int, face: Face = Face.PLAIN) -> int:
    return -int(-font(size, face).getlength(text) // 1)


@lru_cache(maxsize=10_000)
def draws(letter: str, face: Face) -> bool:
    """Whether the typeface has this letter. What it has not would become an empty box."""
    letters = font(20, face)
    return letter == " " or bytes(letters.getmask(letter)) != bytes(letters.getmask(NO_LETTER))


def fit(text: str, *, into: tuple[int, int], largest: int, smallest: int, face: Face = Face.PLAIN) -> FittedText:
    """The largest lettering of a text that fits into a width and a height; what does not fit at all is cut."""
    across, down = into
    found, least, most = None, smallest, max(largest, smallest)
    while least <= most:
        size = (least + most) // 2
        fitted = FittedText(tuple(wrap(text, across, size, face)), size, face)
        if fitted.height <= down and fitted.width <= across:
            found, least = fitted, size + 1
        else:
            most = size - 1
    if found is not None:
        return found
    room = max(1, down // round(smallest * LINE))
    lines = wrap(text, across, smallest, face)
    return FittedText((*lines[: room - 1], _cut(" ".join(lines[room - 1 :]), across, smallest, face)), smallest, face)


def wrap(text: str, across: int, size: int, face: Face = Face.PLAIN) -> list[str]:
    """Lines no wider than this, broken between words; a word that is too wide is broken itself."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if width(longer, size, face) <= across:
            line = longer
            continue
        if line:
            lines.append(line)
        *whole, line = _broken(word, across, size, face)
        lines += whole
    return [*lines, line] if line else lines


def draw(canvas: ImageDraw.ImageDraw, fitted: FittedText, box: Box, colour: Colour) -> None:
    """Put lines at the top left of a box."""
    for number, line in enumerate(fitted.lines):
        place = (box.left, box.top + number * fitted.line_height)
        canvas.text(place, line, fill=colour, font=font(fitted.size, fitted.face))


def _broken(word: str, across: int, size: int, face: Face) -> list[str]:
    parts, part = [], ""
    for letter in word:
        if part and width(part + letter, size, face) > across:
            parts.append(part)
            part = ""
        part += letter
    return [*parts, part]


def _cut(text: str, across: int, size: int, face: Face) -> str:
    if width(text, size, face) <= across:
        return text
    while text and width(f"{text}…", size, face) > across:
        text = text[:-1]
    return f"{text.rstrip()}…"
