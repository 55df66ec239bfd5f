"""Fields: names with values, from the pairs of a document and from its tables with two columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apps.extraction.analysis import Analysis, Table
from apps.extraction.clean_text import plain

MAX_FIELDS = 5000  # of one document
MAX_NAME, MAX_VALUE = 200, 5000


@dataclass(frozen=True, kw_only=True)
class Field:
    name: str
    value: str
    page: int
    source: str
    confidence: float


def fields(analysis: Analysis) -> list[Field]:
    """Return the fields of a document in order; fields of one page with the same name and value are merged."""
    found: dict[tuple[int, str, str], Field] = {}
    for field in [*_pairs(analysis), *_cells(analysis)]:
        if field.value.endswith(":"):
            continue  # two names side by side, with their values below
        known = found.get((field.page, field.name.casefold(), field.value))
        if known is None or known.confidence < field.confidence:
            found[field.page, field.name.casefold(), field.value] = field
    return sorted(found.values(), key=lambda field: field.page)[:MAX_FIELDS]


def _pairs(analysis: Analysis) -> Iterator[Field]:
    for pair in analysis.pairs:
        name, value = plain(pair.name, MAX_NAME).rstrip(": "), plain(pair.value, MAX_VALUE)
        if name and value:
            yield Field(name=name, value=value, page=pair.page, source="pair", confidence=pair.confidence)


def _cells(analysis: Analysis) -> Iterator[Field]:
    for table in analysis.tables:
        if table.columns == 2:
            for name, value in _rows(table):
                yield Field(name=name, value=value, page=table.page, source="table", confidence=0.6)


def _rows(table: Table) -> Iterator[tuple[str, str]]:
    cells = {(cell.row, cell.column): cell.text for cell in table.cells}
    for row in range(table.rows):
        name, value = plain(cells.get((row, 0), ""), MAX_NAME), plain(cells.get((row, 1), ""), MAX_VALUE)
        if name.rstrip(": ") and value:
            yield name.rstrip(": "), value
