"""Column: a column of a table, as detectors see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ade_engine.dates import is_date
from ade_engine.numbers import is_number
from ade_engine.texts import normal
from ade_engine.values import Value, letter


@dataclass(frozen=True)
class Column:
    """A column that is not mapped to a field yet.

    header    its header without the unit: `Net`
    group     the header above this and neighbouring columns: `Amount`
    unit      the unit in its header or in the row below: `EUR`
    samples   its first non-blank values, as they are in the file
    rows      the number of rows that the samples were taken from
    """

    position: int
    header: str
    group: str = ""
    unit: str | None = None
    samples: tuple[Value, ...] = ()
    rows: int = 0

    @property
    def letter(self) -> str:
        """The column's letter in the spreadsheet: A, B …"""
        return letter(self.position)

    @property
    def title(self) -> str:
        """The whole header: `Amount / Net`."""
        return f"{self.group} / {self.header}".strip(" /") if self.group else self.header

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The normal forms of its header, without and with its group."""
        alone, whole = normal(self.header), normal(f"{self.group} {self.header}")
        return (alone,) if alone == whole else (alone, whole)

    def share(self, test: Callable[[Value], bool]) -> float:
        """Return the share of samples that pass a test, from 0 to 1; 0 if there are no samples."""
        return sum(map(test, self.samples)) / len(self.samples) if self.samples else 0.0

    @cached_property
    def numbers(self) -> float:
        """The share of its samples that are numbers."""
        return self.share(is_number)

    @cached_property
    def dates(self) -> float:
        """The share of its samples that are dates."""
        return self.share(is_date)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The samples as texts."""
        return tuple(str(sample).strip() for sample in self.samples)
