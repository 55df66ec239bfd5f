"""Cells: reads the cells of a sheet, and the shared strings of a workbook, from XML as a stream."""

from __future__ import annotations

from datetime import datetime
from typing import IO, Any
from xml.parsers import expat

from openpyxl.utils.datetime import from_excel, from_ISO8601

from ade_engine.errors import InputError
from ade_engine.limits import Limits, exceeded
from ade_engine.values import Line, Value

CHUNK = 1 << 16
LAST_ROW, LAST_COLUMN = 1_048_576, 16_384
LETTERS: dict[str, int] = {}


class CellReader:
    """Turns the parser's events into lines; rows without values are left out."""

    def __init__(
        self,
        strings: list[str],
        *,
        epoch: datetime,
        date_styles: frozenset[int],
        duration_styles: frozenset[int],
        max_characters: int,
    ) -> None:
        self.strings = strings
        self.epoch = epoch
        self.date_styles = date_styles
        self.duration_styles = duration_styles
        self.max_characters = max_characters
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.root
        self.lines: list[Line] = []
        self.row = self.column = 0
        self.cells: list[Value] = []
        self.text: list[str] = []
        self.kind, self.style = "n", 0
        self.length = 0
        self.phonetic = False  # inside a pronunciation guide, which is not part of the text

    def take_lines(self) -> list[Line]:
        """Return the complete lines, and forget them."""
        lines, self.lines = self.lines, []
        return lines

    def root(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the namespace prefix of all elements from the first one."""
        prefix = tag.rpartition(":")[0]
        prefix = prefix and prefix + ":"
        self.tag_row, self.tag_cell, self.tag_value = prefix + "row", prefix + "c", prefix + "v"
        self.tag_text, self.tag_phonetic = prefix + "t", prefix + "rPh"
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == self.tag_cell:
            self.kind = attributes.get("t", "n")
            style = attributes.get("s")
            self.style = int(style) if style and style.isdigit() else 0
            reference = attributes.get("r")
            self.column = column_of(reference) if reference else self.column + 1
            self.text.clear()
            self.length = 0
        elif tag == self.tag_value or tag == self.tag_text:
            if not self.phonetic:
                self.parser.CharacterDataHandler = self.data
        elif tag == self.tag_phonetic:
            self.phonetic = True
        elif tag == self.tag_row:
            self.begin_row(attributes.get("r"))

    def begin_row(self, number: str | None) -> None:
        self.cells = []
        self.column = 0
        self.row = max(self.row + 1, int(number) if number and number.isdigit() and len(number) < 10 else 0)
        if self.row > LAST_ROW:
            raise InputError("input_damaged", f"a sheet can't have a row {self.row}")

    def data(self, text: str) -> None:
        self.length += len(text)
        if self.length > self.max_characters:
            raise exceeded(
                "max_cell_characters",
                self.max_characters,
                f"a cell in row {self.row} has too many characters",
                row=self.row,
            )
        self.text.append(text)

    def end(self, tag: str) -> None:
        if tag == self.tag_value or tag == self.tag_text:
            self.parser.CharacterDataHandler = None
        elif tag == self.tag_phonetic:
            self.phonetic = False
        elif tag == self.tag_cell:
            if self.text:
                try:
                    value = self.value("".join(self.text))
                except (ValueError, IndexError, OverflowError) as error:
                    raise InputError(
                        "input_damaged", f"a cell in row {self.row} can't be read: {error}", row=self.row
                    ) from error
                if value is not None:
                    missing = self.column - len(self.cells)
                    if missing > 1:
                        self.cells.extend([None] * (missing - 1))
                    if missing > 0:
                        self.cells.append(value)
                    else:
                        self.cells[self.column - 1] = value
                self.text.clear()
        elif tag == self.tag_row and self.cells:
            self.lines.append(Line(self.row, tuple(self.cells)))
            self.cells = []

    def value(self, text: str) -> Value:
        kind = self.kind
        if kind == "s":
            return self.strings[int(text)] or None
        if kind == "n":
            return self.number(text)
        if kind == "b":
            return text.strip() not in ("0", "false")
        if kind == "d":
            moment: Value = from_ISO8601(text)
            return moment
        return clean(text)

    def number(self, text: str) -> Value:
        number: int | float = int(text) if len(text) < 18 and text.lstrip("-").isdigit() else float(text)
        if self.style in self.date_styles:
            try:
                moment: Value = from_excel(number, self.epoch, timedelta=self.style in self.duration_styles)
                return moment
            except (OverflowError, ValueError):
                return "#VALUE!"
        return number


def column_of(reference: str) -> int:
    """Return the column number of a cell reference: `AB12` → 28."""
    letters = reference.rstrip("0123456789")
    number = LETTERS.get(letters)
    if number is None:
        number = 0
        for sign in letters[:4]:
            number = number * 26 + ord(sign) - 64
        if not letters.isascii() or not letters.isupper() or not 1 <= number <= LAST_COLUMN:
            raise InputError("input_damaged", f"{reference[:20]!r} is not a cell reference")
        LETTERS[letters] = number
    return number


def clean(text: str) -> str | None:
    """Replace escaped line ends and tabs; None if the text is blank."""
    if "_x000" in text:
        text = text.replace("_x000D_", "\r").replace("_x000A_", "\n").replace("_x0009_", "\t")
    return text if text.strip() else None


def read_strings(source: IO[bytes], limits: Limits) -> list[str]:
    """Return all shared strings; a blank one becomes an empty string."""
    strings: list[str] = []
    parts: list[str] = []
    parser = expat.ParserCreate()
    parser.buffer_text = True
    length, phonetic = [0], [False]

    def start(tag: str, _: dict[str, Any]) -> None:
        name = tag.rpartition(":")[2]
        if name == "si":
            parts.clear()
            length[0] = 0
        elif name == "rPh":
            phonetic[0] = True
        elif name == "t" and not phonetic[0]:
            parser.CharacterDataHandler = data

    def data(text: str) -> None:
        length[0] += len(text)
        if length[0] > limits.max_cell_characters:
            raise exceeded(
                "max_cell_characters",
                limits.max_cell_characters,
                "a shared string of the workbook has too many characters",
            )
        parts.append(text)

    def end(tag: str) -> None:
        name = tag.rpartition(":")[2]
        if name == "t":
            parser.CharacterDataHandler = None
        elif name == "rPh":
            phonetic[0] = False
        elif name == "si":
            strings.append((clean("".join(parts)) or "").replace("_x005F_", "_"))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    while chunk := source.read(CHUNK):
        parser.Parse(chunk, False)
    parser.Parse(b"", True)
    return strings
