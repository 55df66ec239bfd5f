"""Validation: checks names, numbers and durations that a user gives, and suggests a name for a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Protocol, TypeGuard

from holdfast.support import json_text
from holdfast.support.errors import InvalidArguments, InvalidPolicy

MAX_KEY, MAX_NAME = 400, 200
CUTOFF = 0.75  # difflib's similarity: one typing error in a short word, two in a long one


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that is similar, or whose last part (after a dot) is equal or similar; else None."""
    import difflib

    names = sorted(known)
    ends = {name.rpartition(".")[2]: name for name in reversed(names)}
    if word in ends:
        return ends[word]
    if similar := difflib.get_close_matches(word, names, n=1, cutoff=CUTOFF):
        return similar[0]
    similar = difflib.get_close_matches(word, ends, n=1, cutoff=CUTOFF)
    return ends[similar[0]] if similar else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean …?" for the end of an error message, or "" if no known name is similar."""
    suggestion = closest(word, known)
    return "" if suggestion is None else f"; did you mean {suggestion}?"


class Named(Protocol):
    """A job or a pipeline."""

    @property
    def name(self) -> str: ...


def job_name(job: Named | str) -> str:
    """Return the name of a job that is given as a job or by its name."""
    name = job if isinstance(job, str) else getattr(job, "name", None)
    if not is_name(name):
        raise InvalidArguments(f"give a job or its name, not {job!r}")
    return name


def as_duration(value: timedelta | float | None) -> timedelta | None:
    """Convert a timedelta or a number of seconds to a duration."""
    if value is None or isinstance(value, timedelta):
        return value
    try:
        if not isinstance(value, bool):
            return timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidPolicy(f"{value!r} is not a duration: give a timedelta or a number of seconds")


def is_number(value: object, *, least: int, most: int = 2**31 - 1) -> bool:
    """Whether this is a whole number from `least` to `most`. A bool is not a number."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def check_limit(limit: object) -> None:
    """Raise InvalidArguments unless this is a whole number of at least 1."""
    if not is_number(limit, least=1):
        raise InvalidArguments(f"limit must be a whole number of at least 1, not {limit!r}")


def is_name(value: object, *, max_length: int = MAX_NAME) -> TypeGuard[str]:
    """Whether this is text of 1 to `max_length` characters that every database can store."""
    return isinstance(value, str) and 0 < len(value) <= max_length and json_text.storable(value)


def check_name(value: object, *, what: str, max_length: int = MAX_NAME) -> None:
    """Raise InvalidPolicy unless this is a valid name of a queue, a job or the like."""
    if not is_name(value, max_length=max_length):
        raise InvalidPolicy(f"{what} must be text of 1 to {max_length} characters, without NUL or lone surrogates")


def is_segment_name(name: object) -> bool:
    """Whether this is a valid name of a segment.

    It must not end with a space, because SQL Server ignores trailing spaces when it compares.
    """
    return is_name(name) and not name.endswith(" ")
