"""Analysis: what was read in a document, whoever has read it. It is kept as JSON until all of it is in the tables.

What comes from outside is checked here, and its texts are cleaned of what a database or a page can't have.
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
    """The document itself is the reason: trying again is of no use. `reason` is a stable word."""

    def __init__(self, reason: str, said: str) -> None:
        super().__init__(said)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class Cell:
    row: Count
    column: Count
    text: Text


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table as it stands on a page; what spans several cells stands in the first."""

    page: PageNumber
    rows: Count
    columns: Count
    cells: list[Cell]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A name and the value that stands beside it."""

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
    """What a document says."""

    pages: list[Page]
    tables: list[Table] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)

    def to_json(self) -> bytes:
        return _form.dump_json(self)

    @classmethod
    def from_json(cls, kept: bytes) -> Analysis:
        return _form.validate_json(kept)

    def checked(self) -> Analysis:
        """The same, clean; ValueError or TypeError if it is none: a page twice, a text that is a number."""
        found = _form.validate_python(asdict(self))
        if len({page.number for page in found.pages}) < len(found.pages):
            raise ValueError("a page comes twice")
        return found


_form: TypeAdapter[Analysis] = TypeAdapter(Analysis)


def bounded(analysis: Analysis, *, most_pages: int, most_characters: int) -> Analysis:
    """The same, or Unreadable if there is more of it than is taken."""
    if len(analysis.pages) > most_pages:
        raise Unreadable("TOO_MANY_PAGES", f"it has {len(analysis.pages)} pages; {most_pages} are read at most")
    if sum(len(page.text) for page in analysis.pages) > most_characters:
        raise Unreadable("TOO_LONG", f"it has more than {most_characters} characters")
    return analysis
