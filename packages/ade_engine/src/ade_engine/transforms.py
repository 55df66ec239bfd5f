"""Transforms for configurations.

Transforms of numbers and dates look at the column's samples first, to tell 1.234,56 from 1,234.56.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date as Day  # noqa: N812
from datetime import datetime
from decimal import Decimal

from ade_engine.columns import Column
from ade_engine.dates import guess_day_first, parse_date
from ade_engine.numbers import PLAIN, guess_decimal, parse_number
from ade_engine.rules import Function, Rules
from ade_engine.values import Value

SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Prepared:
    """The function that transforms the values of one column, and a note for the report."""

    function: Function
    note: str | None = None


class ColumnTransform:
    """A transform that looks at the column before it transforms the first value."""

    __name__ = "column_transform"

    def prepare(self, column: Column, rules: Rules) -> Prepared:
        """Return the function for this column."""
        raise NotImplementedError

    def __call__(self, value: Value) -> Value:
        return self.prepare(Column(0, ""), Rules()).function(value)  # type: ignore[no-any-return]


class decimal(ColumnTransform):  # noqa: N801 - used like a function
    """Parses a number, with the decimal mark that the column uses. `places` rounds it."""

    __name__ = "decimal"

    def __init__(self, *, places: int | None = None) -> None:
        self.quantum = None if places is None else Decimal(1).scaleb(-places)

    def prepare(self, column: Column, rules: Rules) -> Prepared:
        mark, example = guess_decimal(column.samples)
        decimal_mark, quantum = mark or rules.decimal, self.quantum

        def read(value: Value) -> Decimal:
            number = to_decimal(value, decimal_mark)
            return number if quantum is None else number.quantize(quantum)

        return Prepared(read, f"decimal mark {mark!r}, as in {example!r}" if mark else None)


class percent(ColumnTransform):  # noqa: N801
    """Parses a percentage: 19 %, 19 and 0.19 all become 0.19; a plain number over 1 counts as percent."""

    __name__ = "percent"

    def prepare(self, column: Column, rules: Rules) -> Prepared:
        decimal_mark = guess_decimal(str(sample).rstrip("% ") for sample in column.samples)[0] or rules.decimal
        whole = column.unit == "%" and not all(isinstance(sample, float) and sample <= 1 for sample in column.samples)

        def read(value: Value) -> Decimal:
            if isinstance(value, str) and value.rstrip().endswith("%"):
                return parse_number(value.rstrip(" %\u00a0\u202f"), decimal=decimal_mark) / 100
            number = to_decimal(value, decimal_mark)
            return number / 100 if whole or abs(number) > 1 else number

        return Prepared(read)


class integer(ColumnTransform):  # noqa: N801
    """Parses a whole number; 12.0 is one, 12.5 is not."""

    __name__ = "integer"

    def prepare(self, column: Column, rules: Rules) -> Prepared:
        mark = guess_decimal(column.samples)[0] or rules.decimal

        def read(value: Value) -> int:
            number = to_decimal(value, mark)
            if number != number.to_integral_value():
                raise ValueError(f"{str(value)[:60]!r} is not a whole number")
            return int(number)

        return Prepared(read)


class date(ColumnTransform):  # noqa: N801
    """Parses a date, with day and month in the order that the column uses."""

    __name__ = "date"

    def prepare(self, column: Column, rules: Rules) -> Prepared:
        day_first, example = guess_day_first(column.samples)
        first = rules.day_first if day_first is None else day_first

        def read(value: Value) -> Day:
            if type(value) is datetime:
                return value.date()
            return parse_date(value, day_first=first)

        note = None if day_first is None else f"{'day' if day_first else 'month'} first, as in {example!r}"
        return Prepared(read, note)


def to_decimal(value: Value, mark: str) -> Decimal:
    if isinstance(value, str):
        bare = value.strip()
        if mark == "." and PLAIN.fullmatch(bare):
            return Decimal(bare)
        return parse_number(bare, decimal=mark)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ValueError(f"{str(value)[:60]!r} is not a number")
    # A spreadsheet shows fifteen digits; the digits after them are rounding errors of binary fractions.
    number = Decimal(format(value, ".15g")) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{value!r} is not a number")
    return number


def text(value: Value) -> str | None:
    """Return a text with single spaces, and whole numbers without a decimal point; None if it is empty."""
    if isinstance(value, str):
        stripped = value.strip()
        needs_cleaning = "  " in stripped or not stripped.isprintable() or "\u00a0" in stripped
        return (SPACE.sub(" ", stripped) if needs_cleaning else stripped) or None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.hour == value.minute == value.second == 0:
        return value.date().isoformat()
    return None if value is None else str(value)


def upper(value: Value) -> str | None:
    """Return a text in upper case."""
    cleaned = text(value)
    return cleaned and cleaned.upper()


def lower(value: Value) -> str | None:
    """Return a text in lower case."""
    cleaned = text(value)
    return cleaned and cleaned.lower()


def choice(spellings: Mapping[str, str | bool]) -> Callable[[Value], Value]:
    """Replace each spelling by its value: `{"m": "male", "male": "male"}`; anything else is a bad value."""
    known = {spelling.casefold(): value for spelling, value in spellings.items()}

    def choice(value: Value) -> Value:
        chosen = known.get((text(value) or "").casefold())
        if chosen is None:
            raise ValueError(f"{str(value)[:60]!r} is not one of {', '.join(sorted(set(map(str, known.values()))))}")
        return chosen

    return choice
