"""Validation: names, numbers and durations as a user writes them, with a suggestion for a misspelled name."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Protocol, TypeGuard

from holdfast.support import json_text
from holdfast.support.errors import InvalidArguments, InvalidPolicy

MAX_KEY, MAX_NAME = 400, 200
ALIKE = 0.75  # of difflib's measure: one slip in a short word, two in a long one


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known name that this is nearly, or whose last part it is (nearly); None if there is none."""
    import difflib

    names = sorted(known)
    ends = {name.rpartition(".")[2]: name for name in reversed(names)}
    if word in ends:
        return ends[word]
    if found := difflib.get_close_matches(word, names, n=1, cutoff=ALIKE):
        return found[0]
    found = difflib.get_close_matches(word, ends, n=1, cutoff=ALIKE)
    return ends[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name; nothing if no known one is like it."""
    found = closest(word, known)
    return "" if found is None else f"; did you mean {found}?"


class Named(Protocol):
    """A job or a pipeline."""

    @property
    def name(self) -> str: ...


def job_name(job: Named | str) -> str:
    """The name of a job that is given as a job or by its name."""
    name = job if isinstance(job, str) else getattr(job, "name", None)
    if not is_name(name):
        raise InvalidArguments(f"give a job or its name, not {job!r}")
    return name


def as_duration(value: timedelta | float | None) -> timedelta | None:
    """A duration from a timedelta or a number of seconds."""
    if value is None or isinstance(value, timedelta):
        return value
    try:
        if not isinstance(value, bool):
            return timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidPolicy(f"{value!r} is no duration: give a timedelta or a number of seconds")


def is_number(value: object, *, least: int, most: int = 2**31 - 1) -> bool:
    """Whether this is a whole number between these two; a yes or a no is none."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def check_limit(limit: object) -> None:
    """Refuse what can't say how many of a list are wanted."""
    if not is_number(limit, least=1):
        raise InvalidArguments(f"limit is a whole number of at least 1, not {limit!r}")


def is_name(value: object, *, max_length: int = MAX_NAME) -> TypeGuard[str]:
    """Whether this is text of 1 to `max_length` characters that every database can keep."""
    return isinstance(value, str) and 0 < len(value) <= max_length and json_text.storable(value)


def check_name(value: object, *, what: str, max_length: int = MAX_NAME) -> None:
    """Refuse what is no name: a queue's, a job's."""
    if not is_name(value, max_length=max_length):
        raise InvalidPolicy(f"{what} is text of 1 to {max_length} characters, none NUL or half a character")


def is_segment_name(name: object) -> bool:
    """Whether a segment may be called that; with a space at the end, SQL Server would take it for the one without."""
    return is_name(name) and not name.endswith(" ")
