"""Values: what a cell of a spreadsheet can hold."""

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
    """One row of a sheet. `spans` are its cells that are merged over several columns: first column → last."""

    number: int
    cells: Cells
    spans: dict[int, int] = field(default_factory=dict)

    def filled(self) -> list[int]:
        """The positions of the cells that hold something."""
        return [position for position, value in enumerate(self.cells) if value is not None]

    def at(self, position: int) -> Value:
        """The cell at a position; rows may be shorter than the table."""
        return self.cells[position] if position < len(self.cells) else None


def letter(position: int) -> str:
    """0 → A, 25 → Z, 26 → AA."""
    name = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        name = chr(65 + rest) + name
    return name


def shown(value: Value, most: int = 80) -> str:
    """A value as words in a message, cut short."""
    words = value.isoformat() if isinstance(value, (datetime, date, time)) else str(value)
    return words if len(words) <= most else words[: most - 1] + "…"
