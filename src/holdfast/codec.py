"""Codec: values to JSON text and back, and instants to text that sorts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import pydantic_core

from holdfast.errors import NotSerialisable


def rows(values: list[Any], columns: tuple[str, ...], instant: Callable[[datetime], str]) -> str:
    """JSON text of a batch: plain values, objects, or arrays of `columns`; instants as `instant` writes them."""
    if values and isinstance(values[0], dict):
        if columns:
            values = [[instant(v) if isinstance(v := row[name], datetime) else v for name in columns] for row in values]
        else:
            values = [{name: instant(v) if isinstance(v, datetime) else v for name, v in row.items()} for row in values]
    return pydantic_core.to_json(values).decode()


def dump(value: object, *, what: str) -> str:
    """JSON text for a value, or NotSerialisable."""
    try:
        return pydantic_core.to_json(value, inf_nan_mode="constants", by_alias=False).decode()
    except (pydantic_core.PydanticSerializationError, UnicodeError, ValueError, RecursionError) as error:
        raise NotSerialisable(f"{what} can't be stored as JSON: {error}") from error


def load(text: str) -> Any:
    return pydantic_core.from_json(text)


def compact(value: object) -> str:
    """JSON text of our own plain values, always the same for the same value."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


@lru_cache(maxsize=4096)  # a batch says the same instant many times
def instant_text(instant: datetime) -> str:
    """UTC, always 26 characters, so that text order is time order."""
    return instant.astimezone(UTC).isoformat(" ", "microseconds")[:26]


@lru_cache(maxsize=4096)
def parse_instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def storable(text: str) -> bool:
    """Whether every database can keep this text: no NUL, no half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def digest(*parts: str | None, size: int = 8) -> str:
    """Hex characters, two for each byte of `size`, that change when any part does."""
    joined = "\x1f".join("\x00" if part is None else part for part in parts)
    return hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()
