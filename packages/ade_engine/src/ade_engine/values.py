"""Values: the contents of cells, and lines of cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal

Value = str | int | float | bool | Decimal | datetime | date | time | timedelta | None
Cells = tuple[Value, ...]

ERRORS = frozenset(
    {"#N/A", "#REF!", "#DIV/0!", "#VALUE!", "#NAME?", "#NULL!", "#NUM!", "#SPILL!", "#CALC!", "#GETTING_DATA"}
)


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a sheet. `spans` has the cells that are merged over several columns: first column → last column."""

    number: int
    cells: Cells
    spans: dict[int, int] = field(default_factory=dict)

    def filled(self) -> list[int]:
        """Return the positions of the cells that are not empty."""
        return [position for position, value in enumerate(self.cells) if value is not None]

    def at(self, position: int) -> Value:
        """Return the cell at a position; None beyond the end of a short row."""
        return self.cells[position] if position < len(self.cells) else None


def letter(position: int) -> str:
    """Return the letter of a column: 0 → A, 25 → Z, 26 → AA."""
    name = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        name = chr(65 + rest) + name
    return name


def display(value: Value, max_length: int = 80) -> str:
    """Return a value as a short text for a message."""
    text = value.isoformat() if isinstance(value, (datetime, date, time)) else str(value)
    return text if len(text) <= max_length else text[: max_length - 1] + "…"
