"""Tables: where they begin and end on a sheet, and what each line inside is.

lines ──find_header──▶ header ──▶ data, data, (blank), total, section, note, repeated header …
                                     │
                                     └── a line that is the header of another table: end, and begin again
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
from ade_engine.sheets import Ahead
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
    """One table on a sheet, while it is read."""

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
        """Its columns: `A:F`."""
        return f"{letter(self.columns[0].position)}:{letter(self.columns[-1].position)}" if self.columns else ""

    def skip(self, line: Line, reason: str) -> None:
        """Leave a line out, and remember why."""
        self.skipped[reason] += 1
        if len(self.notes) < 100:
            words = " | ".join(str(value) for value in line.cells if value is not None)
            self.notes.append((line.number, reason, words[:120]))


class Finder:
    """Finds the tables of one sheet, one after another, without holding the sheet in memory."""

    def __init__(self, sheet: str, lines: Iterator[Line], recognise: Recognise, *, first_number: int = 1) -> None:
        self.sheet = sheet
        self.ahead = Ahead(lines)
        self.recognise = recognise
        self.number = first_number
        self.left_out: list[Line] = []
        self.carried: str | None = None  # a line of one text that turned out to be the title of what follows

    def tables(self) -> Iterator[list[Table]]:
        """The tables that begin on the same line: mostly one, more if side by side. Read their rows before the next."""
        while window := self.ahead.peek(WINDOW):
            header = find_header(window, self.recognise)
            if header is None:
                if (start := headless(window)) is not None:
                    yield self.begin(window, Header(start, start - 1, (), 0.0))
                else:
                    for _ in range(max(1, len(window) // 2) if len(window) == WINDOW else len(window)):
                        self.leave_out(self.ahead.take())
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
            line = self.ahead.take()
            if line is not None and line.number < window[header.first].number:
                above.append(" ".join(str(value) for value in line.cells if value is not None))
        title = " / ".join([*([self.carried] if self.carried else []), *above[-6:]])[:400]
        self.carried = None
        rows = (window[header.first].number, window[header.last].number) if header.labels else None
        sample = [line for line in self.ahead.peek(SAMPLES) if len(line.filled()) >= 2 or len(header.labels) == 1]
        sample = self.of_this_table(sample, header.labels)
        groups = side_by_side(header.labels, sample) if header.labels else [unnamed(sample)]
        tables = []
        for labels in groups:
            made = Table(self.number, self.sheet, title, rows, labels, texts)
            made.columns = columns_of(labels, sample, alone=len(groups) == 1)
            self.number += 1
            tables.append(made)
        return tables

    def of_this_table(self, sample: list[Line], labels: tuple[Label, ...]) -> list[Line]:
        kept: list[Line] = []
        names = {normal(one.header) for one in labels}
        for line in sample:
            said = {normal(value) for value in line.cells if type(value) is str and len(value) < 60}
            if len(said & names) >= max(2, 0.6 * len(names)):
                continue
            if labels and self.is_other_header(line, kept):
                break
            if not is_total(line, len(labels)):
                kept.append(line)
        return kept

    def rows(self, tables: list[Table]) -> Iterator[tuple[Table, Line]]:
        """The data lines of tables that stand side by side, until another table begins."""
        names = {normal(one.header) for table in tables for one in table.labels}
        labelled = {(one.position, normal(one.header)) for table in tables for one in table.labels}
        texts = tables[0].header_texts
        before = tables[0].header_rows[1] if tables[0].header_rows else 0
        apart = alone = False
        while (line := self.ahead.first()) is not None:
            if before and line.number > before + 1:
                tables[0].skipped["blank"] += line.number - before - 1
                apart = True
            count = len(line.cells) - line.cells.count(None)
            # Most lines are plain data: only one after a gap, or with a word of the header, is looked at closely.
            suspect = apart or not texts.isdisjoint(line.cells)
            if suspect and tables[0].labels and count >= 2 and is_words(line):
                said = {(label.position, normal(label.header)) for label in labels_of([line])}
                if len(said & labelled) >= max(2, 0.6 * len(labelled)):
                    self.ahead.take()
                    tables[0].skip(line, "repeated_header")
                    before, apart = line.number, False
                    continue
                if (apart or sum(name in names for _, name in said) >= 2) and self.begins_another(line, labelled):
                    self.carried = tables[0].section if alone else None
                    return
            self.ahead.take()
            before = line.number
            apart = alone = count == 1
            if len(tables) > 1:
                yield from self.sorted_out(tables, line)
            elif (reason := self.reason_to_skip(tables[0], line, count)) is None:
                tables[0].read += 1
                yield tables[0], line
            else:
                tables[0].skip(line, reason)

    def begins_another(self, line: Line, labelled: set[tuple[int, str]]) -> bool:
        """Another header: the configuration recognises it, or it is all new words with values below."""
        labels = labels_of([line])
        if any(is_value(value) for value in line.cells):
            return False
        if self.recognise(tuple(f"\n{one.header}" for one in labels)) >= 2:
            return True
        below = self.ahead.peek(4)[1:]
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

    def sorted_out(self, tables: list[Table], line: Line) -> Iterator[tuple[Table, Line]]:
        """What a line is to each of the tables that it crosses."""
        filled = line.filled()
        for table in tables:
            own = [position for position in filled if has(table, position)]
            if not own:
                continue
            part = only(line, own)
            reason = self.reason_to_skip(table, part, len(own))
            if reason is None:
                table.read += 1
                yield table, part
            else:
                table.skip(part, reason)

    def reason_to_skip(self, table: Table, line: Line, count: int) -> str | None:
        """Why a line is no data: it sums up, heads a section, is a note or gives units. None if it is data."""
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


def headless(window: Sequence[Line]) -> int | None:
    """The first of several lines with values in the same columns: a table to which nobody gave a header."""
    for index, (one, two) in enumerate(pairwise(window)):
        filled = one.filled()
        if len(filled) >= 3 and filled == two.filled() and sum(map(is_value, one.cells)) >= 2:
            return index
    return None


def unnamed(sample: Sequence[Line]) -> tuple[Label, ...]:
    return tuple(Label(position, "") for position in sorted({one for line in sample for one in line.filled()}))


def side_by_side(labels: tuple[Label, ...], sample: Sequence[Line]) -> list[tuple[Label, ...]]:
    """Two tables, if an empty column parts the labels and they repeat on the other side."""
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
    """The columns of a table with their samples; one without a header is a column if values stand in it."""
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
    """The line sums up others: it says so in its first text, and most of the rest is numbers or nothing."""
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


def has(table: Table, position: int) -> bool:
    return table.columns[0].position <= position <= table.columns[-1].position


def only(line: Line, positions: list[int]) -> Line:
    kept = set(positions)
    return Line(line.number, tuple(value if index in kept else None for index, value in enumerate(line.cells)))
