"""Workbooks (.xlsx): openpyxl reads the list of sheets and the styles; the cells are streamed, not kept in memory."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from openpyxl.reader.excel import ExcelReader

from ade_engine import archives
from ade_engine.cells import CellReader, read_strings
from ade_engine.errors import EngineError, InputError
from ade_engine.limits import Limits, exceeded
from ade_engine.loading import Reading
from ade_engine.sheets import Document, Sheet
from ade_engine.values import Line, Value

CHUNK = 1 << 16


class Structure(ExcelReader):  # type: ignore[misc]
    """openpyxl's reader without the cells: reads the list of sheets, the shared strings and the date formats."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.file = path.open("rb")
        try:
            super().__init__(self.file, read_only=True, data_only=True, keep_links=False)
        except BaseException:
            self.file.close()
            raise
        self.limits = limits
        self.sheets: list[tuple[str, bool, str]] = []

    def close(self) -> None:
        """Close the file."""
        self.archive.close()
        self.file.close()

    def read_strings(self) -> None:
        """Read the shared strings."""
        part = self.package.find("application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml")
        if part is not None:
            maximum, size = self.limits.max_shared_strings_bytes, self.archive.getinfo(part.PartName[1:]).file_size
            if size > maximum:
                raise exceeded(
                    "max_shared_strings_bytes", maximum, f"the shared strings of the workbook have {size:,} bytes"
                )
            with self.archive.open(part.PartName[1:]) as source:
                self.shared_strings = read_strings(source, self.limits)

    def read_properties(self) -> None:
        """Skip the properties, such as the author."""

    read_custom = read_theme = read_properties

    def read_worksheets(self) -> None:
        """Collect the sheets' names, whether they are hidden, and their parts."""
        for sheet, relation in self.parser.find_sheets():
            if relation.target in self.valid_files and "chartsheet" not in relation.Type:
                self.sheets.append((str(sheet.name), sheet.state != "visible", relation.target))


def open_workbook(path: Path, reading: Reading, limits: Limits) -> Document:
    """Open a workbook, or raise InputError or LimitExceeded before anything large is unpacked."""
    archives.inspect(path, limits)
    try:
        structure = Structure(path, limits)
        try:
            structure.read()
        except BaseException:
            structure.close()
            raise
    except EngineError:
        raise
    except archives.DAMAGE as error:
        raise archives.damaged(error) from error
    except (ValueError, TypeError, AttributeError, IndexError, expat.ExpatError, SyntaxError) as error:
        raise archives.damaged(error.__cause__ or error) from error
    if not structure.sheets:
        structure.close()
        raise InputError("input_empty", "the workbook has no sheets")
    return Document(
        "xlsx", tuple(sheet_of(structure, *sheet, limits) for sheet in structure.sheets), close=structure.close
    )


def sheet_of(structure: Any, name: str, hidden: bool, part: str, limits: Limits) -> Sheet:
    position = [0]
    size = max(1, structure.archive.getinfo(part).file_size)

    def lines() -> Iterator[Line]:
        try:
            merged = archives.merges(structure.archive, part)
            yield from fill_merged(read_lines(structure, part, position, limits), merged)
        except expat.ExpatError as error:
            raise InputError("input_damaged", f"sheet {name!r} is not well-formed: {error}", sheet=name) from error
        except archives.DAMAGE as error:
            raise archives.damaged(error) from error

    return Sheet(name, hidden, lines, lambda: round(min(1.0, position[0] / size), 3))


def read_lines(structure: Any, part: str, position: list[int], limits: Limits) -> Iterator[Line]:
    workbook = structure.wb
    reader = CellReader(
        structure.shared_strings,
        epoch=workbook.epoch,
        date_styles=frozenset(workbook._date_formats),
        duration_styles=frozenset(workbook._timedelta_formats),
        max_characters=limits.max_cell_characters,
    )
    archive: zipfile.ZipFile = structure.archive
    with archive.open(part) as source:
        while chunk := source.read(CHUNK):
            position[0] += len(chunk)
            reader.parser.Parse(chunk, False)
            yield from reader.take_lines()
        reader.parser.Parse(b"", True)
        yield from reader.take_lines()


def fill_merged(lines: Iterator[Line], merged: list[tuple[int, int, int, int]]) -> Iterator[Line]:
    """Repeat a merged cell's value in each row that it covers, and record in `spans` which columns it covers."""
    if not merged:
        yield from lines
        return
    remaining = sorted(merged, reverse=True)
    open_ranges: list[tuple[int, int, int, Value]] = []
    for line in lines:
        cells, spans = list(line.cells), {}
        while remaining and remaining[-1][0] <= line.number:
            top, left, bottom, right = remaining.pop()
            if bottom < line.number:
                continue
            value = line.at(left - 1) if top == line.number else None
            if top == line.number and right > left:
                spans[left - 1] = right - 1
            if value is not None and bottom > top:
                open_ranges.append((bottom, left, right, value))
        for bottom, left, right, value in open_ranges:
            if bottom >= line.number:
                cells.extend([None] * (left - len(cells)))
                cells[left - 1] = value
                if right > left:
                    spans[left - 1] = right - 1
        open_ranges = [one for one in open_ranges if one[0] > line.number]
        yield Line(line.number, tuple(cells), spans)
