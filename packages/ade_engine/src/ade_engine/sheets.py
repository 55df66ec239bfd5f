"""Sheets: what every kind of document comes down to, lines one after another, with the limits kept as they are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ade_engine.limits import Limits, exceeded
from ade_engine.values import Line


@dataclass(frozen=True)
class Sheet:
    """One sheet. `lines` reads it from the beginning; `share` tells how far the reading has come, if anyone knows."""

    name: str
    hidden: bool
    lines: Callable[[], Iterator[Line]]
    share: Callable[[], float | None] = lambda: None


@dataclass(frozen=True)
class Document:
    """An open document: what it is, and its sheets. Close it at the end."""

    kind: str
    sheets: tuple[Sheet, ...]
    facts: dict[str, str] = field(default_factory=dict)
    close: Callable[[], None] = lambda: None


class Meter:
    """Counts what is read of all the sheets, and stops at the limits."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.rows = 0
        self.cells = 0

    def bounded(self, sheet: str, lines: Iterator[Line]) -> Iterator[Line]:
        """The same lines, or LimitExceeded."""
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


class Ahead:
    """Lines with a look ahead: peek as far as you like to decide, then take."""

    def __init__(self, lines: Iterator[Line]) -> None:
        self.lines = lines
        self.waiting: deque[Line] = deque()

    def peek(self, count: int) -> list[Line]:
        """The next lines, at most `count`; they stay."""
        while len(self.waiting) < count and (line := next(self.lines, None)) is not None:
            self.waiting.append(line)
        return [self.waiting[index] for index in range(min(count, len(self.waiting)))]

    def first(self) -> Line | None:
        """The next line; it stays."""
        if not self.waiting and (line := next(self.lines, None)) is not None:
            self.waiting.append(line)
        return self.waiting[0] if self.waiting else None

    def take(self) -> Line | None:
        """The next line, or None at the end."""
        return self.waiting.popleft() if self.waiting else next(self.lines, None)
