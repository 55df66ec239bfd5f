"""Validators for configurations: each returns None if the value is good, else a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal

from ade_engine.rows import Row
from ade_engine.values import Value, display

Validate = Callable[..., str | None]


class unique:  # noqa: N801 - used like a function
    """Rejects a row if an earlier one has the same value, or the same combination of the given fields."""

    def __init__(self, *fields: str) -> None:
        self.fields = fields
        self.seen: dict[object, str] = {}
        self.__name__ = "unique"

    def __call__(self, value: Value, row: Row) -> str | None:
        key: object = tuple(str(row.get(field)) for field in self.fields) if self.fields else value
        first = self.seen.setdefault(key, row.location)
        return None if first == row.location else f"{display(value)} is a duplicate of {first}"


def among(words: Iterable[str]) -> Validate:
    """Reject values that are not among these."""
    known = frozenset(words)

    def among(value: Value) -> str | None:
        return None if value in known else f"{display(value)!r} is not one of the allowed values"

    return among


def between(low: float, high: float) -> Validate:
    """Reject values that are not numbers from low to high."""

    def between(value: Value) -> str | None:
        if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
            return f"{display(value)!r} is not a number"
        return None if low <= value <= high else f"{value} is not between {low} and {high}"

    return between


def pattern(expression: str, message: str = "does not have the expected form") -> Validate:
    """Reject values that don't fully match a regular expression."""
    compiled = re.compile(expression)

    def pattern(value: Value) -> str | None:
        return None if compiled.fullmatch(str(value)) else f"{display(value)!r} {message}"

    return pattern
