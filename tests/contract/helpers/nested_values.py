"""Nested values of any depth."""

from __future__ import annotations

from typing import Any


def nested(levels: int) -> Any:
    """Lists and objects in turn, `levels` deep."""
    value: Any = "core"
    for number in range(levels):
        value = [value] if number % 2 else {"in": value}
    return value
