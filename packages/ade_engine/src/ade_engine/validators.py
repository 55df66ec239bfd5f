"""Validators that a configuration can use: None if the value is good, else what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal

from ade_engine.rows import Row
from ade_engine.values import Value, shown

Validate = Callable[..., str | None]


class unique:  # noqa: N801 - reads as a word in a list of validators
    """No two rows have the same value, or the same values of several fields."""

    def __init__(self, *fields: str) -> None:
        self.fields = fields
        self.seen: dict[object, str] = {}
        self.__name__ = "unique"

    def __call__(self, value: Value, row: Row) -> str | None:
        key: object = tuple(str(row.get(field)) for field in self.fields) if self.fields else value
        first = self.seen.setdefault(key, row.place)
        return None if first == row.place else f"{shown(value)} is there already, in {first}"


def among(words: Iterable[str]) -> Validate:
    """One of these."""
    known = frozenset(words)

    def among(value: Value) -> str | None:
        return None if value in known else f"{shown(value)!r} is none of those that are known"

    return among


def between(low: float, high: float) -> Validate:
    """A number from low to high."""

    def between(value: Value) -> str | None:
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
            return f"{shown(value)!r} is not a number"
        return None if low <= value <= high else f"{value} is not between {low} and {high}"

    return between


def pattern(expression: str, words: str = "does not have the form that is wanted") -> Validate:
    """A text that matches a regular expression as a whole."""
    compiled = re.compile(expression)

    def pattern(value: Value) -> str | None:
        return None if compiled.fullmatch(str(value)) else f"{shown(value)!r} {words}"

    return pattern
