"""Text fitting: fits a text into a box by breaking lines, then by choosing a smaller size, then by cutting the text.

The typefaces are FiraGO and Fira Mono from the wheel `pymupdf-fonts`, so that slides look the same on every machine.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache

import pymupdf_fonts
from PIL import ImageDraw, ImageFont
from PIL.ImageFont import FreeTypeFont

LINE_HEIGHT = 1.28
UNKNOWN_LETTER = "\U0010ffff"
Colour = tuple[int, int, int]


class Face(Enum):
    """A typeface, by its name in the wheel."""

    PLAIN = "figo"
    HEAVY = "figbo"
    CODE = "fimo"


@dataclass(frozen=True)
class Box:
    """A rectangle on a slide, in pixels."""

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
    """Lines of text, with the font size at which they fit into their box."""

    lines: tuple[str, ...]
    size: int
    face: Face = Face.PLAIN

    @property
    def line_height(self) -> int:
        return round(self.size * LINE_HEIGHT)

    @property
    def height(self) -> int:
        return self.line_height * len(self.lines)

    @property
    def width(self) -> int:
        return max((width(line, self.size, self.face) for line in self.lines), default=0)


@lru_cache(maxsize=64)
def font(size: int, face: Face = Face.PLAIN) -> FreeTypeFont:
    # The basic layout engine is in every build of Pillow, so slides look the same with each.
    return ImageFont.truetype(io.BytesIO(_content(face)), size, layout_engine=ImageFont.Layout.BASIC)


@cache
def _content(face: Face) -> bytes:
    content: bytes = pymupdf_fonts.fontbuffers[face.value]()
    return content


@lru_cache(maxsize=10_000)
def width(text: str, size: int, face: Face = Face.PLAIN) -> int:
    return -int(-font(size, face).getlength(text) // 1)


@lru_cache(maxsize=10_000)
def has_letter(letter: str, face: Face) -> bool:
    """Return whether the typeface has this letter; a missing one would be drawn as an empty box."""
    letters = font(20, face)
    return letter == " " or bytes(letters.getmask(letter)) != bytes(letters.getmask(UNKNOWN_LETTER))


def fit(text: str, *, into: tuple[int, int], largest: int, smallest: int, face: Face = Face.PLAIN) -> FittedText:
    """Fit a text into a width and a height at the largest possible size; cut it if the smallest does not fit."""
    max_width, max_height = into
    best, low, high = None, smallest, max(largest, smallest)
    while low <= high:
        size = (low + high) // 2
        fitted = FittedText(tuple(wrap(text, max_width, size, face)), size, face)
        if fitted.height <= max_height and fitted.width <= max_width:
            best, low = fitted, size + 1
        else:
            high = size - 1
    if best is not None:
        return best
    count = max(1, max_height // round(smallest * LINE_HEIGHT))
    lines = wrap(text, max_width, smallest, face)
    last = _cut(" ".join(lines[count - 1 :]), max_width, smallest, face)
    return FittedText((*lines[: count - 1], last), smallest, face)


def wrap(text: str, max_width: int, size: int, face: Face = Face.PLAIN) -> list[str]:
    """Break a text into lines of at most this width, between words; a word that is too wide is split."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if width(longer, size, face) <= max_width:
            line = longer
            continue
        if line:
            lines.append(line)
        *full_lines, line = _split_word(word, max_width, size, face)
        lines += full_lines
    return [*lines, line] if line else lines


def draw(canvas: ImageDraw.ImageDraw, fitted: FittedText, box: Box, colour: Colour) -> None:
    """Draw lines from the top left of a box."""
    for number, line in enumerate(fitted.lines):
        position = (box.left, box.top + number * fitted.line_height)
        canvas.text(position, line, fill=colour, font=font(fitted.size, fitted.face))


def _split_word(word: str, max_width: int, size: int, face: Face) -> list[str]:
    parts, part = [], ""
    for letter in word:
        if part and width(part + letter, size, face) > max_width:
            parts.append(part)
            part = ""
        part += letter
    return [*parts, part]


def _cut(text: str, max_width: int, size: int, face: Face) -> str:
    if width(text, size, face) <= max_width:
        return text
    while text and width(f"{text}…", size, face) > max_width:
        text = text[:-1]
    return f"{text.rstrip()}…"
