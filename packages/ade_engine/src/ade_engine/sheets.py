"""Sheets: a document of any kind as sheets of lines, with the limits checked while the lines are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ade_engine.limits import Limits, exceeded
from ade_engine.values import Line


@dataclass(frozen=True)
class Sheet:
    """One sheet. `lines` reads it from the beginning; `share` returns how much of it has been read, or None."""

    name: str
    hidden: bool
    lines: Callable[[], Iterator[Line]]
    share: Callable[[], float | None] = lambda: None


@dataclass(frozen=True)
class Document:
    """An open document with its kind and its sheets; close it at the end."""

    kind: str
    sheets: tuple[Sheet, ...]
    facts: dict[str, str] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None


class LimitCounter:
    """Counts the rows and cells read from all sheets, and checks them against the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.rows = 0
        self.cells = 0

    def limited(self, sheet: str, lines: Iterator[Line]) -> Iterator[Line]:
        """Yield the same lines, or raise LimitExceeded."""
        limits = self.limits
        for line in lines:
            self.rows += 1
            self.cells += len(line.cells)
            if self.rows > limits.max_rows:
                raise exceeded(
                    "max_rows", limits.max_rows, "the document has too many rows", sheet=sheet, row=line.number
                )
            if len(line.cells) > limits.max_columns:
                raise exceeded(
                    "max_columns",
                    limits.max_columns,
                    f"row {line.number} of sheet {sheet!r} has {len(line.cells):,} columns",
                    sheet=sheet,
                    row=line.number,
                )
            if self.cells > limits.max_cells:
                raise exceeded(
                    "max_cells", limits.max_cells, "the document has too many cells", sheet=sheet, row=line.number
                )
            yield line


class Lookahead:
    """An iterator of lines that can return the next lines without consuming them."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self.lines = lines
        self.buffer: deque[Line] = deque()

    def peek(self, count: int) -> list[Line]:
        """Return the next lines, at most `count`, without consuming them."""
        while len(self.buffer) < count and (line := next(self.lines, None)) is not None:
            self.buffer.append(line)
        return [self.buffer[index] for index in range(min(count, len(self.buffer)))]

    def first(self) -> Line | None:
        """Return the next line without consuming it, or None at the end."""
        if not self.buffer and (line := next(self.lines, None)) is not None:
            self.buffer.append(line)
        return self.buffer[0] if self.buffer else None

    def take(self) -> Line | None:
        """Consume and return the next line, or None at the end."""
        return self.buffer.popleft() if self.buffer else next(self.lines, None)
