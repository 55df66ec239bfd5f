"""Detectors that a configuration can use: they look at a column's header and samples, and give -1 to 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ade_engine.columns import Column
from ade_engine.texts import likeness, normal
from ade_engine.values import Value

Judge = Callable[[Column], float]
LEAST, SURE = 0.45, 0.8


class headers:  # noqa: N801 - reads as a word in a list of detectors
    """The header is one of these names, or like one of them; the likeness is the score.

    A `|` parts names, so that one line holds many: `headers("supplier | vendor | creditor")`.
    """

    def __init__(self, *names: str, score: float = 1.0) -> None:
        if not names:
            raise ValueError("headers() needs at least one name")
        self.names = tuple(dict.fromkeys(normal(name) for line in names for name in line.split("|")))
        self.score = score
        self.__name__ = "headers"

    def __call__(self, column: Column) -> float:
        best = max(likeness(name, header) for header in column.names for name in self.names)
        return round(best * self.score, 3) if best >= LEAST else 0.0


class not_headers(headers):  # noqa: N801
    """The header is one of these names, so the column is something else."""

    def __init__(self, *names: str, score: float = 0.8) -> None:
        super().__init__(*names, score=score)
        self.__name__ = "not_headers"

    def __call__(self, column: Column) -> float:
        return -found if (found := super().__call__(column)) >= SURE * self.score else 0.0


def looks_like_dates(*, score: float = 0.2) -> Judge:
    """Most samples are dates; if hardly any is, that speaks against it."""

    def looks_like_dates(column: Column) -> float:
        return leaning(column, column.dates, score)

    return looks_like_dates


def looks_like_numbers(*, score: float = 0.2) -> Judge:
    """Most samples are numbers; if hardly any is, that speaks against it."""

    def looks_like_numbers(column: Column) -> float:
        return leaning(column, column.numbers, score)

    return looks_like_numbers


def looks_like_words(*, score: float = 0.2) -> Judge:
    """Most samples are neither numbers nor dates."""

    def looks_like_words(column: Column) -> float:
        return leaning(column, 1 - column.numbers - column.dates, score)

    return looks_like_words


def matches(pattern: str, *, score: float = 0.3) -> Judge:
    """Most samples match a regular expression as a whole."""
    expression = re.compile(pattern)

    def matches(column: Column) -> float:
        return leaning(column, column.share(lambda value: bool(expression.fullmatch(str(value).strip()))), score)

    return matches


def one_of(words: Iterable[str], *, score: float = 0.3) -> Judge:
    """Most samples are among these words, in whatever case."""
    known = frozenset(word.casefold() for word in words)

    def one_of(column: Column) -> float:
        def is_known(value: Value) -> bool:
            return str(value).strip().casefold() in known

        return leaning(column, column.share(is_known), score)

    return one_of


def leaning(column: Column, share: float, score: float) -> float:
    """From -score (none of the samples) to score (all of them); nothing if there are no samples."""
    return round(score * (2 * share - 1), 3) if column.samples else 0.0
