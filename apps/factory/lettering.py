"""Lettering: text in a box that it never leaves: smaller if it must be, broken where it may be, cut at last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from PIL import ImageDraw, ImageFont
from PIL.ImageFont import FreeTypeFont

LINE = 1.28
Colour = tuple[int, int, int]


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
class Lettered:
    """Lines of one size that fit where they are to stand."""

    lines: tuple[str, ...]
    size: int

    @property
    def line_height(self) -> int:
        return round(self.size * LINE)

    @property
    def height(self) -> int:
        return self.line_height * len(self.lines)

    @property
    def width(self) -> int:
        return max((width(line, self.size) for line in self.lines), default=0)


@lru_cache(maxsize=64)
def font(size: int) -> FreeTypeFont:
    """The typeface that Pillow brings along, so that a slide is the same wherever it is drawn."""
    found = ImageFont.load_default(size)
    assert isinstance(found, FreeTypeFont), "Pillow was built without FreeType"
    return found


@lru_cache(maxsize=10_000)
def width(text: str, size: int) -> int:
    return -int(-font(size).getlength(text) // 1)


def fit(text: str, *, into: tuple[int, int], largest: int, smallest: int) -> Lettered:
    """The largest lettering of a text that fits into a width and a height; what does not fit at all is cut."""
    across, down = into
    found, least, most = None, smallest, max(largest, smallest)
    while least <= most:
        size = (least + most) // 2
        lettered = Lettered(tuple(wrap(text, across, size)), size)
        if lettered.height <= down and lettered.width <= across:
            found, least = lettered, size + 1
        else:
            most = size - 1
    if found is not None:
        return found
    room = max(1, down // round(smallest * LINE))
    lines = wrap(text, across, smallest)
    return Lettered((*lines[: room - 1], _cut(" ".join(lines[room - 1 :]), across, smallest)), smallest)


def wrap(text: str, across: int, size: int) -> list[str]:
    """Lines no wider than this, broken between words; a word that is too wide is broken itself."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if width(longer, size) <= across:
            line = longer
            continue
        if line:
            lines.append(line)
        *whole, line = _broken(word, across, size)
        lines += whole
    return [*lines, line] if line else lines


def draw(canvas: ImageDraw.ImageDraw, lettered: Lettered, box: Box, colour: Colour, *, heavy: bool = False) -> None:
    """Put lines at the top left of a box."""
    for number, line in enumerate(lettered.lines):
        place = (box.left, box.top + number * lettered.line_height)
        weight = max(1, lettered.size // 28) if heavy else 0
        canvas.text(place, line, fill=colour, font=font(lettered.size), stroke_width=weight, stroke_fill=colour)


def _broken(word: str, across: int, size: int) -> list[str]:
    parts, part = [], ""
    for letter in word:
        if part and width(part + letter, size) > across:
            parts.append(part)
            part = ""
        part += letter
    return [*parts, part]


def _cut(text: str, across: int, size: int) -> str:
    if width(text, size) <= across:
        return text
    while text and width(f"{text}…", size) > across:
        text = text[:-1]
    return f"{text.rstrip()}…"
