"""Row: one row of a table, as transforms and validators see it."""

from __future__ import annotations

from collections.abc import Iterator

from ade_engine.values import Value


class Row:
    """A row on its way to the normalised table; `row["net"]` is the current value of a field.

    raw        the values as they are in the file, by field
    unmapped   the values of the columns without a field, by header
    sheet, number   the row's sheet and row number in the file; `location` has both: `March!A12`
    section    the text of the last row that held only one text: `Department: Sales`
    title      the text above the table
    headers    the headers of the columns, by field
    units      the units of the columns, by field
    """

    __slots__ = ("headers", "location", "number", "raw", "section", "sheet", "title", "units", "unmapped", "values")

    def __init__(
        self,
        values: dict[str, Value],
        *,
        unmapped: dict[str, Value],
        sheet: str,
        number: int,
        location: str,
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
        self.location = location
        self.section = section
        self.title = title
        self.headers = headers
        self.units = units

    def __getitem__(self, field: str) -> Value:
        return self.values[field]

    def __setitem__(self, field: str, value: Value) -> None:
        if field not in self.values:
            raise KeyError(f"there is no field named {field!r}")
        self.values[field] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def get(self, field: str, default: Value = None) -> Value:
        """Return the value of a field, or the default if it is blank."""
        value = self.values.get(field)
        return default if value is None else value
