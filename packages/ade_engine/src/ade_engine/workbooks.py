"""Workbooks (.xlsx): openpyxl reads their plan and styles; the cells are read as a stream, with no tree in memory."""

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


class Plan(ExcelReader):  # type: ignore[misc]
    """openpyxl's reader, without the cells: where the sheets are, how dates are shown."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self.file = path.open("rb")
        try:
            super().__init__(self.file, read_only=True, data_only=True, keep_links=False)
        except BaseException:
            self.file.close()
            raise
        self.limits = limits
        self.found: list[tuple[str, bool, str]] = []

    def close(self) -> None:
        """Let go of the file."""
        self.archive.close()
        self.file.close()

    def read_strings(self) -> None:
        """The texts that cells share, by number."""
        part = self.package.find("application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml")
        if part is not None:
            most, size = self.limits.max_shared_strings_bytes, self.archive.getinfo(part.PartName[1:]).file_size
            if size > most:
                raise exceeded("max_shared_strings_bytes", most, f"the texts of the workbook have {size:,} bytes")
            with self.archive.open(part.PartName[1:]) as source:
                self.shared_strings = read_strings(source, self.limits)

    def read_properties(self) -> None:
        """Who wrote it is nobody's business."""

    read_custom = read_theme = read_properties

    def read_worksheets(self) -> None:
        """The sheets' names, whether they are hidden, and their parts."""
        for sheet, relation in self.parser.find_sheets():
            if relation.target in self.valid_files and "chartsheet" not in relation.Type:
                self.found.append((str(sheet.name), sheet.state != "visible", relation.target))


def open_workbook(path: Path, reading: Reading, limits: Limits) -> Document:
    """Open a workbook, or raise InputError or LimitExceeded before anything large is unpacked."""
    archives.inspect(path, limits)
    try:
        plan = Plan(path, limits)
        try:
            plan.read()
        except BaseException:
            plan.close()
            raise
    except EngineError:
        raise
    except archives.DAMAGE as error:
        raise archives.damaged(error) from error
    except (ValueError, TypeError, AttributeError, IndexError, expat.ExpatError, SyntaxError) as error:
        raise archives.damaged(error.__cause__ or error) from error
    if not plan.found:
        plan.close()
        raise InputError("input_empty", "the workbook has no sheets")
    return Document("xlsx", tuple(sheet_of(plan, *found, limits) for found in plan.found), close=plan.close)


def sheet_of(plan: Any, name: str, hidden: bool, part: str, limits: Limits) -> Sheet:
    position = [0]
    size = max(1, plan.archive.getinfo(part).file_size)

    def lines() -> Iterator[Line]:
        try:
            merged = archives.merges(plan.archive, part)
            yield from filled(read_lines(plan, part, position, limits), merged)
        except expat.ExpatError as error:
            raise InputError("input_damaged", f"sheet {name!r} is not well-formed: {error}", sheet=name) from error
        except archives.DAMAGE as error:
            raise archives.damaged(error) from error

    return Sheet(name, hidden, lines, lambda: round(min(1.0, position[0] / size), 3))


def read_lines(plan: Any, part: str, position: list[int], limits: Limits) -> Iterator[Line]:
    workbook = plan.wb
    reader = CellReader(
        plan.shared_strings,
        epoch=workbook.epoch,
        date_styles=frozenset(workbook._date_formats),
        duration_styles=frozenset(workbook._timedelta_formats),
        most_characters=limits.max_cell_characters,
    )
    archive: zipfile.ZipFile = plan.archive
    with archive.open(part) as source:
        while chunk := source.read(CHUNK):
            position[0] += len(chunk)
            reader.parser.Parse(chunk, False)
            yield from reader.taken()
        reader.parser.Parse(b"", True)
        yield from reader.taken()


def filled(lines: Iterator[Line], merged: list[tuple[int, int, int, int]]) -> Iterator[Line]:
    """Lines with merged cells made plain: down a column every row has the value; along a row the span is noted."""
    if not merged:
        yield from lines
        return
    waiting = sorted(merged, reverse=True)
    open_ranges: list[tuple[int, int, int, Value]] = []
    for line in lines:
        cells, spans = list(line.cells), {}
        while waiting and waiting[-1][0] <= line.number:
            top, left, bottom, right = waiting.pop()
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
