"""Analysis: the text, tables and pairs read from a document, in the same form for every reader.

It is stored as JSON until its contents are in the tables. Data from a service is validated here, and characters that a
database can't store or a page can't show are removed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated

from pydantic import BeforeValidator, Field, TypeAdapter

from apps.extraction.clean_text import clean

PageNumber = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
Count = Annotated[int, Field(ge=0, le=1_000_000, strict=True)]
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, BeforeValidator(clean)]


class Unreadable(Exception):
    """The document can't be read, and trying again would not help. `failure_type` is a stable word."""

    def __init__(self, failure_type: str, message: str) -> None:
        super().__init__(message)
        self.failure_type = failure_type


@dataclass(frozen=True, kw_only=True)
class Cell:
    row: Count
    column: Count
    text: Text


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table on a page. A merged cell has its text in the first of the cells that it covers."""

    page: PageNumber
    rows: Count
    columns: Count
    cells: list[Cell]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A name and the value beside it."""

    page: PageNumber
    name: Text
    value: Text
    confidence: Share


@dataclass(frozen=True, kw_only=True)
class Page:
    number: PageNumber
    text: Text


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """The contents of a document."""

    pages: list[Page]
    tables: list[Table] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)

    def to_json(self) -> bytes:
        return _adapter.dump_json(self)

    @classmethod
    def from_json(cls, stored: bytes) -> Analysis:
        return _adapter.validate_json(stored)

    def checked(self) -> Analysis:
        """Return a validated and cleaned copy; raise ValueError or TypeError if a value is wrong."""
        copy = _adapter.validate_python(asdict(self))
        if len({page.number for page in copy.pages}) < len(copy.pages):
            raise ValueError("two pages have the same number")
        return copy


_adapter: TypeAdapter[Analysis] = TypeAdapter(Analysis)


def check_size(analysis: Analysis, *, most_pages: int, most_characters: int) -> Analysis:
    """Return the analysis, or raise Unreadable if it has too many pages or characters."""
    if len(analysis.pages) > most_pages:
        raise Unreadable(
            "TOO_MANY_PAGES", f"the document has {len(analysis.pages):,} pages; the limit is {most_pages:,}"
        )
    if sum(len(page.text) for page in analysis.pages) > most_characters:
        raise Unreadable("TOO_LONG", f"the document exceeds the limit of {most_characters:,} characters")
    return analysis
