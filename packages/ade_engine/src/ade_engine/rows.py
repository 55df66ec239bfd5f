"""Row: one row on its way from the sheet to the normalised table."""

from __future__ import annotations

from collections.abc import Iterator

from ade_engine.values import Value


class Row:
    """What transforms and validators see: `row["net"]` is the value of a field as it stands now.

    raw        the values as they were in the file, by field
    unmapped   the values of the columns that no field took, by header
    sheet, number   where it stands in the file; `place` is both: `March!A12`
    section    the words of the last row that held one text only: `Department: Sales`
    title      the words above the table
    headers    the headers of the columns, by field
    units      the units of the columns, by field
    """

    __slots__ = ("headers", "number", "place", "raw", "section", "sheet", "title", "units", "unmapped", "values")

    def __init__(
        self,
        values: dict[str, Value],
        *,
        unmapped: dict[str, Value],
        sheet: str,
        number: int,
        place: str,
        section: str | None,
        title: str,
        headers: dict[str, str],
        units: dict[str, str],
    ) -> None:
        self.values = values
        self.raw = dict(values)
        self.unmapped = unmapped
        self.sheet = sheet
        self.number = number
        self.place = place
        self.section = section
        self.title = title
        self.headers = headers
        self.units = units

    def __getitem__(self, field: str) -> Value:
        return self.values[field]

    def __setitem__(self, field: str, value: Value) -> None:
        if field not in self.values:
            raise KeyError(f"no field is named {field!r}")
        self.values[field] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def get(self, field: str, otherwise: Value = None) -> Value:
        """The value of a field, or something else if it is blank."""
        value = self.values.get(field)
        return otherwise if value is None else value
