"""JSON text: converts values to text and back, and instants to text that sorts.

`check` refuses JSON text that some database could not store or some reader could not read back. `difference` finds
values that change when they are stored and read back. A stored value may still be damaged; `load` then raises
Unreadable. `Reading` decodes a row for a list and shows such a value as "unreadable: …" instead of failing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate
from typing import Any, TypeVar

import pydantic_core
from pydantic import BaseModel

from holdfast.support.errors import InvalidArguments, NotSerialisable, Unreadable

T = TypeVar("T")

MAX_DEPTH = 100
"""Levels of lists and objects in one stored value. SQL Server reads 128 levels, and Holdfast adds up to two of its own
(a pipeline's arguments are inside its plan). Pydantic reads 200, and an API response adds a few more."""


def rows(values: list[Any], columns: tuple[str, ...], instant: Callable[[datetime], str]) -> str:
    """Return a batch as JSON text: plain values, objects, or arrays of `columns`. `instant` formats datetimes."""
    if values and isinstance(values[0], dict):
        if columns:
            values = [[instant(v) if isinstance(v := row[name], datetime) else v for name in columns] for row in values]
        else:
            values = [{name: instant(v) if isinstance(v, datetime) else v for name, v in row.items()} for row in values]
    return pydantic_core.to_json(values).decode()


def dump(value: object, *, what: str) -> str:
    """Return a value as JSON text that can be stored, or raise NotSerialisable."""
    try:
        text = pydantic_core.to_json(value, inf_nan_mode="constants", bytes_mode="base64", by_alias=False).decode()
    except NOT_JSON as error:
        raise not_json(error, what=what) from error
    return check(text, what=what)


NOT_JSON = (pydantic_core.PydanticSerializationError, UnicodeError, ValueError, RecursionError)
"""The errors that pydantic raises for a value that it can't write as JSON."""


def not_json(error: Exception, *, what: str) -> NotSerialisable:
    """Return the error to raise for one of NOT_JSON."""
    if isinstance(error, RecursionError) or "depth" in str(error):
        return _too_deep(what)
    return NotSerialisable(f"{what} can't be stored as JSON: {error}")


def check(text: str, *, what: str) -> str:
    """Return the JSON text if every database can store it and every reader can read it; else raise NotSerialisable."""
    if _is_too_deep(text):
        raise _too_deep(what)
    if storable(text) and not ("\\u0000" in text and _ENCODED_NUL.search(text)):
        return text
    raise NotSerialisable(f"{what} can't be stored: a text in it contains NUL (\\u0000) or a lone surrogate (\\ud800)")


def difference(value: object, again: object) -> str | None:
    """Describe how a value that was read back differs from the stored one, by type names; None if they are equal.

    Two aware datetimes of the same instant are equal.
    """
    return None if _equal(value, again) else _first_difference(value, again, "")


def load(text: str) -> Any:
    """Decode stored JSON text, or raise Unreadable."""
    try:
        return pydantic_core.from_json(text)
    except (ValueError, TypeError) as error:
        raise Unreadable(f"not JSON ({error}): {_beginning(text)}") from None


def is_json(text: str) -> bool:
    """Whether `load` can decode this stored text."""
    try:
        load(text)
    except Unreadable:
        return False
    return True


def shown(text: str | None) -> Any:
    """Decode stored JSON text for a list or a page; return a marker if it can't be decoded."""
    try:
        return None if text is None else load(text)
    except Unreadable as error:
        return marker(error)


def marker(fault: object) -> str:
    """Return the text that people see in place of a value that can't be decoded."""
    return f"unreadable: {fault}"


class Reading:
    """Decodes the columns of one stored row. `unreadable` names those that could not be decoded; None if all could."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = row
        self._faults = [
            f"{column}: not an instant: {_beginning(value.text)}"
            for column, value in row.items()
            if isinstance(value, UnreadableInstant)
        ]

    @property
    def unreadable(self) -> str | None:
        return "; ".join(self._faults) or None

    def column(self, name: str, decode: Callable[[Any], T], *, instead: Callable[[str], T]) -> T:
        """Decode a column. If that fails, record the fault and return `instead(marker)`."""
        try:
            return decode(self._row[name])
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            self._faults.append(f"{name}: {error if isinstance(error, Unreadable) else repr(error)}")
            return instead(marker(error))


def texts(text: str) -> list[str]:
    """Decode a stored list of texts, or raise Unreadable."""
    value = load(text)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unreadable(f"not a list of texts: {_beginning(text)}")
    return value


def mapping(text: str) -> dict[str, Any]:
    """Decode a stored JSON object, or raise Unreadable."""
    value = load(text)
    if not isinstance(value, dict):
        raise Unreadable(f"not a JSON object: {_beginning(text)}")
    return value


def compact(value: object) -> str:
    """Return plain JSON values as text; equal values give equal text."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


@lru_cache(maxsize=4096)  # a batch contains the same instant many times
def instant_text(instant: datetime) -> str:
    """Return an instant in UTC as 26 characters, so that text order is time order."""
    return instant.astimezone(UTC).isoformat(" ", "microseconds")[:26]


class UnreadableInstant(datetime):
    """1970-01-01 in place of a stored instant that can't be parsed; `text` is the stored value."""

    text: object = ""


@lru_cache(maxsize=4096)
def parse_instant(text: str) -> datetime:
    """Parse a stored instant. Return an UnreadableInstant instead of failing, so that the row can still be shown."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except (ValueError, TypeError):
        unreadable = UnreadableInstant(1970, 1, 1, tzinfo=UTC)
        unreadable.text = text
        return unreadable


def storable(text: str) -> bool:
    """Whether every database can store this text: it has no NUL and no lone surrogate."""
    return "\x00" not in text and (text.isascii() or not _HALF.search(text))


def check_text(value: object, *, what: str) -> None:
    """Raise InvalidArguments unless this is None or text that every database can store."""
    if value is not None and not (isinstance(value, str) and storable(value)):
        raise InvalidArguments(f"{what} must be text without NUL characters or lone surrogates")


def digest(*parts: str | None, size: int = 8) -> str:
    """Return a hex digest of `size` bytes over all parts."""
    import hashlib

    joined = "\x1f".join("\x00" if part is None else part for part in parts)
    return hashlib.blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


_HALF = re.compile("[\ud800-\udfff]")
_ENCODED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # after an odd number of backslashes
_LEVELS = dict(zip(b"[{]}", (1, 1, -1, -1), strict=True))
_NO_BRACKETS = bytes(set(range(256)) - _LEVELS.keys())


def _too_deep(what: str) -> NotSerialisable:
    return NotSerialisable(f"{what} can't be stored: lists and objects are nested more than {MAX_DEPTH} levels deep")


def _is_too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    unescaped = text.replace("\\\\", "").replace('\\"', "")  # each remaining quote begins or ends a string
    outside = "".join(unescaped.split('"')[::2])
    brackets = outside.encode("ascii", "ignore").translate(None, _NO_BRACKETS)
    return max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > MAX_DEPTH


def _equal(value: object, again: object) -> bool:
    try:
        return bool(value == again)
    except Exception:  # for some types, such as arrays, `==` gives no bool
        return False


def _first_difference(value: object, again: object, path: str) -> str | None:
    """Describe the first part that differs.

    Containers are compared part by part, because Python's `==` calls a datetime in the repeated hour of a time zone
    unequal to the same instant in any other zone.
    """
    if _equal(value, again) or _same_instant(value, again):
        return None
    where = path or "it"
    if isinstance(value, float) and not math.isfinite(value):
        return f"{where} is {value}, which JSON does not support"
    if type(value) is not type(again):
        return f"{where} is of type {type(value).__name__} and would come back as {type(again).__name__}"
    parts, parts_again = _parts(value), _parts(again)
    if parts is None or parts_again is None:
        return f"{where} is of type {type(value).__name__} and would not come back equal"
    if (lost := next((key for key in parts if key not in parts_again), None)) is not None:
        return f"{where} has a key of type {type(lost).__name__}, which would not come back"
    if len(parts) != len(parts_again):
        return f"{where} is of type {type(value).__name__} and would come back with different parts"
    inner = (_first_difference(part, parts_again[key], f"{path}[{_beginning(key)}]") for key, part in parts.items())
    return next((text for text in inner if text is not None), None)


def _same_instant(value: object, again: object) -> bool:
    both = isinstance(value, datetime) and isinstance(again, datetime)
    if not both or value.utcoffset() is None or again.utcoffset() is None:  # type: ignore[attr-defined]
        return False
    return value.astimezone(UTC) == again.astimezone(UTC)  # type: ignore[attr-defined, no-any-return]


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """Return the parts of a container, a model or a plain object; None if only its own `==` can compare it."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    if isinstance(value, BaseModel):
        return {**value.__dict__, **(value.__pydantic_extra__ or {}), **(value.__pydantic_private__ or {})}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if field.compare}
    compares_itself = any("__eq__" in vars(kind) for kind in type(value).__mro__[:-1])
    return vars(value) if not compares_itself and hasattr(value, "__dict__") else None


def _beginning(text: object) -> str:
    written = repr(text)
    return written if len(written) <= 60 else f"{written[:60]}…"
