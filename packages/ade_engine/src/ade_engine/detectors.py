"""Detectors for configurations: each scores a column by its header or samples, from -1 to 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ade_engine.columns import Column
from ade_engine.texts import normal, similarity
from ade_engine.values import Value

Detector = Callable[[Column], float]
MIN_SIMILARITY, CERTAIN_SIMILARITY = 0.45, 0.8


class headers:  # noqa: N801 - used like a function
    """Scores how similar the header is to one of these names.

    `|` separates names: `headers("supplier | vendor | creditor")`.
    """

    def __init__(self, *names: str, score: float = 1.0) -> None:
        if not names:
            raise ValueError("headers() needs at least one name")
        self.names = tuple(dict.fromkeys(normal(name) for line in names for name in line.split("|")))
        self.score = score
        self.__name__ = "headers"

    def __call__(self, column: Column) -> float:
        best = max(similarity(name, header) for header in column.names for name in self.names)
        return round(best * self.score, 3) if best >= MIN_SIMILARITY else 0.0


class not_headers(headers):  # noqa: N801
    """Gives a negative score to a column whose header is one of these names."""

    def __init__(self, *names: str, score: float = 0.8) -> None:
        super().__init__(*names, score=score)
        self.__name__ = "not_headers"

    def __call__(self, column: Column) -> float:
        score = super().__call__(column)
        return -score if score >= CERTAIN_SIMILARITY * self.score else 0.0


def looks_like_dates(*, score: float = 0.2) -> Detector:
    """Gives a positive score to a column of dates, and a negative score to one with few or no dates."""

    def looks_like_dates(column: Column) -> float:
        return weighted(column, column.dates, score)

    return looks_like_dates


def looks_like_numbers(*, score: float = 0.2) -> Detector:
    """Gives a positive score to a column of numbers, and a negative score to one with few or no numbers."""

    def looks_like_numbers(column: Column) -> float:
        return weighted(column, column.numbers, score)

    return looks_like_numbers


def looks_like_words(*, score: float = 0.2) -> Detector:
    """Scores a column by the share of its samples that are neither numbers nor dates."""

    def looks_like_words(column: Column) -> float:
        return weighted(column, 1 - column.numbers - column.dates, score)

    return looks_like_words


def matches(pattern: str, *, score: float = 0.3) -> Detector:
    """Scores a column by the share of its samples that fully match a regular expression."""
    expression = re.compile(pattern)

    def matches(column: Column) -> float:
        return weighted(column, column.share(lambda value: bool(expression.fullmatch(str(value).strip()))), score)

    return matches


def one_of(words: Iterable[str], *, score: float = 0.3) -> Detector:
    """Scores a column by the share of its samples that are among these words, ignoring case."""
    known = frozenset(word.casefold() for word in words)

    def one_of(column: Column) -> float:
        def is_known(value: Value) -> bool:
            return str(value).strip().casefold() in known

        return weighted(column, column.share(is_known), score)

    return one_of


def weighted(column: Column, share: float, score: float) -> float:
    """Return a score from -score (no sample fits) to score (all fit); 0 if there are no samples."""
    return round(score * (2 * share - 1), 3) if column.samples else 0.0
