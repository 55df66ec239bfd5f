"""Transforms that a configuration can use.

Those of numbers and dates look at the column's samples first: is it 1.234,56 or 1,234.56?
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
    """A transform that has looked at its column, and what it found there."""

    function: Function
    note: str | None = None


class Prepares:
    """A transform that wants to see the column before the first value."""

    __name__ = "prepares"

    def prepare(self, column: Column, rules: Rules) -> Prepared:
        """The function for this column."""
        raise NotImplementedError

    def __call__(self, value: Value) -> Value:
        return self.prepare(Column(0, ""), Rules()).function(value)  # type: ignore[no-any-return]


class decimal(Prepares):  # noqa: N801 - reads as a word in a list of transforms
    """A number, with the decimal mark that the column uses. `places` rounds."""

    __name__ = "decimal"

    def __init__(self, *, places: int | None = None) -> None:
        self.quantum = None if places is None else Decimal(1).scaleb(-places)

    def prepare(self, column: Column, rules: Rules) -> Prepared:
        mark, shown = guess_decimal(column.samples)
        decimal_mark, quantum = mark or rules.decimal, self.quantum

        def read(value: Value) -> Decimal:
            number = to_decimal(value, decimal_mark)
            return number if quantum is None else number.quantize(quantum)

        return Prepared(read, f"decimal mark {mark!r}, as {shown!r} shows" if mark else None)


class percent(Prepares):  # noqa: N801
    """A share: 19 %, 19 and 0.19 are all 0.19; a bare number over 1 is taken as percent."""

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


class integer(Prepares):  # noqa: N801
    """A whole number; 12.0 is one, 12.5 is not."""

    __name__ = "integer"

    def prepare(self, column: Column, rules: Rules) -> Prepared:
        mark = guess_decimal(column.samples)[0] or rules.decimal

        def read(value: Value) -> int:
            number = to_decimal(value, mark)
            if number != number.to_integral_value():
                raise ValueError(f"{str(value)[:60]!r} is not a whole number")
            return int(number)

        return Prepared(read)


class date(Prepares):  # noqa: N801
    """A day, with day and month in the order that the column uses."""

    __name__ = "date"

    def prepare(self, column: Column, rules: Rules) -> Prepared:
        day_first, shown = guess_day_first(column.samples)
        first = rules.day_first if day_first is None else day_first

        def read(value: Value) -> Day:
            if type(value) is datetime:
                return value.date()
            return parse_date(value, day_first=first)

        note = None if day_first is None else f"{'day' if day_first else 'month'} first, as {shown!r} shows"
        return Prepared(read, note)


def to_decimal(value: Value, mark: str) -> Decimal:
    if isinstance(value, str):
        bare = value.strip()
        if mark == "." and PLAIN.fullmatch(bare):
            return Decimal(bare)
        return parse_number(bare, decimal=mark)
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise ValueError(f"{str(value)[:60]!r} is not a number")
    # Fifteen digits are what a spreadsheet shows; the rest is the dust of binary fractions.
    number = Decimal(format(value, ".15g")) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{value!r} is not a number")
    return number


def text(value: Value) -> str | None:
    """A text with single spaces; whole numbers without a point; nothing if it is empty."""
    if isinstance(value, str):
        words = value.strip()
        return (
            SPACE.sub(" ", words) if "  " in words or not words.isprintable() or "\u00a0" in words else words
        ) or None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.hour == value.minute == value.second == 0:
        return value.date().isoformat()
    return None if value is None else str(value)


def upper(value: Value) -> str | None:
    """A text in capitals."""
    words = text(value)
    return words and words.upper()


def lower(value: Value) -> str | None:
    """A text in small letters."""
    words = text(value)
    return words and words.lower()


def choice(words: Mapping[str, str | bool]) -> Callable[[Value], Value]:
    """One of several words, each with its spellings: `{"m": "male", "male": "male"}`; anything else is a bad value."""
    known = {word.casefold(): meant for word, meant in words.items()}

    def choice(value: Value) -> Value:
        found = known.get((text(value) or "").casefold())
        if found is None:
            raise ValueError(f"{str(value)[:60]!r} is none of {', '.join(sorted(set(map(str, known.values()))))}")
        return found

    return choice
