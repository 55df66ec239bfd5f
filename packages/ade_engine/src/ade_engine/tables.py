"""Tables: finds where tables begin and end on a sheet, and decides what each of their lines is.

lines ──find_header──▶ header ──▶ data, data, (blank), total, section, note, repeated header …
                                     │
                                     └── the header of another table ends this one and begins the next
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from ade_engine.columns import Column
from ade_engine.header_rows import (
    Header,
    Label,
    Recognise,
    find_header,
    is_label,
    is_units,
    is_value,
    is_words,
    labels_of,
)
from ade_engine.sheets import Lookahead
from ade_engine.texts import normal
from ade_engine.values import Line, Value, letter

WINDOW, SAMPLES = 60, 200
TOTAL = re.compile(
    r"(?:(?:grand|sub|overall|running|sous)[\s-]*)?totals?\b|(?:zwischen|gesamt|end)?summe\b|gesamt(?:betrag)?\b"
    r"|sums?\b|somme\b|(?:sub)?totaal\b|suma\b|razem\b|totale\b|celkem\b|[uü]bertrag\b"
    r"|(?:balance )?(?:carried|brought) forward\b",
    re.IGNORECASE,
)


@dataclass
class Table:
    """One table on a sheet, while it is being read."""

    number: int
    sheet: str
    title: str
    header_rows: tuple[int, int] | None
    labels: tuple[Label, ...]
    header_texts: frozenset[str]
    columns: tuple[Column, ...] = ()
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[tuple[int, str, str]] = field(default_factory=list)
    section: str | None = None
    read: int = 0

    @property
    def span(self) -> str:
        """Its columns, such as `A:F`."""
        return f"{letter(self.columns[0].position)}:{letter(self.columns[-1].position)}" if self.columns else ""

    def skip(self, line: Line, reason: str) -> None:
        """Count a skipped line, and note its text for the report."""
        self.skipped[reason] += 1
        if len(self.notes) < 100:
            text = " | ".join(str(value) for value in line.cells if value is not None)
            self.notes.append((line.number, reason, text[:120]))


class Finder:
    """Finds the tables of one sheet, one after another, without holding the sheet in memory."""

    def __init__(self, sheet: str, lines: Iterator[Line], recognise: Recognise, *, first_number: int = 1) -> None:
        self.sheet = sheet
        self.lookahead = Lookahead(lines)
        self.recognise = recognise
        self.number = first_number
        self.left_out: list[Line] = []
        self.next_title: str | None = None  # the text of the line above the next table, if that line has only one cell

    def tables(self) -> Iterator[list[Table]]:
        """Yield the tables that begin on the same line: usually one, or several side by side.

        The caller must read their rows before it asks for the next tables.
        """
        while window := self.lookahead.peek(WINDOW):
            header = find_header(window, self.recognise)
            if header is None:
                if (start := find_headless(window)) is not None:
                    yield self.begin(window, Header(start, start - 1, (), 0.0))
                else:
                    for _ in range(max(1, len(window) // 2) if len(window) == WINDOW else len(window)):
                        self.leave_out(self.lookahead.take())
                continue
            yield self.begin(window, header)

    def leave_out(self, line: Line | None) -> None:
        if line is not None and len(self.left_out) < 50:
            self.left_out.append(line)

    def begin(self, window: Sequence[Line], header: Header) -> list[Table]:
        above: list[str] = []
        texts = frozenset(
            value for line in window[header.first : header.last + 1] for value in line.cells if isinstance(value, str)
        )
        for _ in range(header.last + 1):
            line = self.lookahead.take()
            if line is not None and line.number < window[header.first].number:
                above.append(" ".join(str(value) for value in line.cells if value is not None))
        title = " / ".join([*([self.next_title] if self.next_title else []), *above[-6:]])[:400]
        self.next_title = None
        rows = (window[header.first].number, window[header.last].number) if header.labels else None
        sample = [line for line in self.lookahead.peek(SAMPLES) if len(line.filled()) >= 2 or len(header.labels) == 1]
        sample = self.data_lines(sample, header.labels)
        groups = side_by_side(header.labels, sample) if header.labels else [empty_labels(sample)]
        tables = []
        for labels in groups:
            table = Table(self.number, self.sheet, title, rows, labels, texts)
            table.columns = columns_of(labels, sample, alone=len(groups) == 1)
            self.number += 1
            tables.append(table)
        return tables

    def data_lines(self, sample: list[Line], labels: tuple[Label, ...]) -> list[Line]:
        """Return the sample's data lines of this table, without totals, repeated headers and the next table."""
        kept: list[Line] = []
        names = {normal(one.header) for one in labels}
        for line in sample:
            texts = {normal(value) for value in line.cells if type(value) is str and len(value) < 60}
            if len(texts & names) >= max(2, 0.6 * len(names)):
                continue
            if labels and self.is_other_header(line, kept):
                break
            if not is_total(line, len(labels)):
                kept.append(line)
        return kept

    def rows(self, tables: list[Table]) -> Iterator[tuple[Table, Line]]:
        """Yield the data lines of tables that are side by side, until another table begins."""
        names = {normal(one.header) for table in tables for one in table.labels}
        labelled = {(one.position, normal(one.header)) for table in tables for one in table.labels}
        texts = tables[0].header_texts
        previous = tables[0].header_rows[1] if tables[0].header_rows else 0
        after_gap = after_single = False
        while (line := self.lookahead.first()) is not None:
            if previous and line.number > previous + 1:
                tables[0].skipped["blank"] += line.number - previous - 1
                after_gap = True
            count = len(line.cells) - line.cells.count(None)
            # Most lines are plain data, so only a line after a gap or with a text from the header is examined closely.
            suspect = after_gap or not texts.isdisjoint(line.cells)
            if suspect and tables[0].labels and count >= 2 and is_words(line):
                found = {(label.position, normal(label.header)) for label in labels_of([line])}
                if len(found & labelled) >= max(2, 0.6 * len(labelled)):
                    self.lookahead.take()
                    tables[0].skip(line, "repeated_header")
                    previous, after_gap = line.number, False
                    continue
                if (after_gap or sum(name in names for _, name in found) >= 2) and self.begins_another(line, labelled):
                    self.next_title = tables[0].section if after_single else None
                    return
            self.lookahead.take()
            previous = line.number
            after_gap = after_single = count == 1
            if len(tables) > 1:
                yield from self.split_line(tables, line)
            elif (reason := self.reason_to_skip(tables[0], line, count)) is None:
                tables[0].read += 1
                yield tables[0], line
            else:
                tables[0].skip(line, reason)

    def begins_another(self, line: Line, labelled: set[tuple[int, str]]) -> bool:
        """Return whether a line is another header: the rules recognise it, or it has new labels with values below."""
        labels = labels_of([line])
        if any(is_value(value) for value in line.cells):
            return False
        if self.recognise(tuple(f"\n{one.header}" for one in labels)) >= 2:
            return True
        below = self.lookahead.peek(4)[1:]
        values = sum(any(is_value(one.at(label.position)) for one in below) for label in labels)
        return (
            len(labels) >= 3
            and values >= len(labels) / 2
            and {(one.position, normal(one.header)) for one in labels} != labelled
        )

    def is_other_header(self, line: Line, kept: list[Line]) -> bool:
        if not is_words(line) or len(line.filled()) < 2 or any(is_value(value) for value in line.cells):
            return False
        labels = labels_of([line])
        return self.recognise(tuple(f"\n{one.header}" for one in labels)) >= 2 and (
            not kept or line.number > kept[-1].number + 1
        )

    def split_line(self, tables: list[Table], line: Line) -> Iterator[tuple[Table, Line]]:
        """Yield each of the side-by-side tables with its part of a line, unless that part is skipped."""
        filled = line.filled()
        for table in tables:
            own = [position for position in filled if covers(table, position)]
            if not own:
                continue
            part = keep_cells(line, own)
            reason = self.reason_to_skip(table, part, len(own))
            if reason is None:
                table.read += 1
                yield table, part
            else:
                table.skip(part, reason)

    def reason_to_skip(self, table: Table, line: Line, count: int) -> str | None:
        """Return why a line is not data (a total, the head of a section, a note or units); None if it is data."""
        width = len(table.columns)
        if is_total(line, width):
            return "total"
        if count == 1 and width >= 3:
            value = line.cells[line.filled()[0]]
            if isinstance(value, str) and not is_value(value):
                if is_note(value):
                    return "note"
                table.section = " ".join(value.split())[:200]
                return "section"
        return "units" if table.read == 0 and is_units(line) else None


def find_headless(window: Sequence[Line]) -> int | None:
    """Return the index of the first line of a table without a header: lines with values in the same columns."""
    for index, (one, two) in enumerate(pairwise(window)):
        filled = one.filled()
        if len(filled) >= 3 and filled == two.filled() and sum(map(is_value, one.cells)) >= 2:
            return index
    return None


def empty_labels(sample: Sequence[Line]) -> tuple[Label, ...]:
    return tuple(Label(position, "") for position in sorted({one for line in sample for one in line.filled()}))


def side_by_side(labels: tuple[Label, ...], sample: Sequence[Line]) -> list[tuple[Label, ...]]:
    """Split the labels into tables if an empty column separates them and the same labels repeat on the other side."""
    used = {position for line in sample for position in line.filled()}
    runs: list[list[Label]] = [[]]
    for one in labels:
        if runs[-1] and one.position > runs[-1][-1].position + 1:
            gap = range(runs[-1][-1].position + 1, one.position)
            if not used.intersection(gap):
                runs.append([])
        runs[-1].append(one)
    names = [{normal(one.header) for one in run} for run in runs]
    if len(runs) > 1 and all(len(names[0] & others) >= 2 for others in names[1:]):
        return [tuple(run) for run in runs]
    return [labels]


def columns_of(labels: tuple[Label, ...], sample: Sequence[Line], *, alone: bool) -> tuple[Column, ...]:
    """Return a table's columns with their samples; a table that is `alone` also gets the columns without a header."""
    named = {one.position: one for one in labels}
    positions = set(named)
    if alone:
        positions |= {position for line in sample for position in line.filled()}
    columns = []
    for position in sorted(positions):
        label = named.get(position, Label(position, ""))
        values: tuple[Value, ...] = tuple(value for line in sample if (value := line.at(position)) is not None)
        columns.append(Column(position, label.header, label.group, label.unit, values, len(sample)))
    return tuple(columns)


def is_total(line: Line, width: int) -> bool:
    """Return whether a line is a total: its first text says so, and most other cells are numbers or empty."""
    first = next((value for value in line.cells if type(value) is str), None)
    if first is None or not TOTAL.match(first.lstrip()):
        return False
    filled = [value for value in line.cells if value is not None]
    words = sum(isinstance(value, str) and is_label(value) for value in filled)
    return words <= 2 and len(filled) < max(2, 0.75 * width)


def is_note(value: str) -> bool:
    text = value.strip()
    return (
        text.startswith(("*", "†", "‡", "¹", "²", "(1)", "1)", "[1]", "--", "=="))
        or len(text) > 60
        or bool(
            re.match(
                r"(?:notes?|nb|source|remarks?|hinweis|anmerkung|stand|as of|printed|page|seite|\w+ by)\b",
                text,
                re.IGNORECASE,
            )
        )
    )


def covers(table: Table, position: int) -> bool:
    return table.columns[0].position <= position <= table.columns[-1].position


def keep_cells(line: Line, positions: list[int]) -> Line:
    kept = set(positions)
    return Line(line.number, tuple(value if index in kept else None for index, value in enumerate(line.cells)))
