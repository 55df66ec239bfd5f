"""Normalising: turns a line of a table into a row of fields, or rejects it with the reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal

from ade_engine.columns import Column
from ade_engine.errors import CodeError
from ade_engine.guard import BadValue, Guard
from ade_engine.mapping import Mapping
from ade_engine.rows import Row
from ade_engine.rules import Rules, Step
from ade_engine.tables import Table
from ade_engine.transforms import ColumnTransform, lower, text, upper
from ade_engine.values import ERRORS, Line, Value, display

UNGUARDED = {text, upper, lower}
VALUES = (str, int, float, Decimal, date, time, timedelta)


@dataclass(frozen=True)
class Problem:
    """Why a row is rejected."""

    field: str | None
    code: str
    message: str


@dataclass(frozen=True)
class Prepared:
    """A transform of a field. `direct` is set for the engine's own transforms, which are called without the guard."""

    step: Step
    direct: Callable[[Value], Value] | None


class Normaliser:
    """Turns the lines of one table into rows."""

    def __init__(self, table: Table, mapping: Mapping, rules: Rules, guard: Guard) -> None:
        self.table = table
        self.rules = rules
        self.guard = guard
        columns = {one.field.name: one.column for one in mapping.mapped}
        self.positions = {name: column.position for name, column in columns.items()}
        self.headers = {name: column.title for name, column in columns.items()}
        self.units = {name: column.unit for name, column in columns.items() if column.unit is not None}
        self.location_prefix = f"{table.sheet}!{table.columns[0].letter}"
        self.others = distinct_names([one.column for one in mapping.unmapped])
        self.notes: dict[str, str] = {}
        # A field without a column is transformed only if one of its transforms takes blanks.
        self.plan = [
            (name, [self.prepare(name, step, columns.get(name)) for step in field.transforms])
            for name, field in rules.fields.items()
            if name in columns or any(step.takes_blanks for step in field.transforms)
        ]

    def prepare(self, field: str, step: Step, column: Column | None) -> Prepared:
        if isinstance(step.function, ColumnTransform):
            prepared = step.function.prepare(column or Column(0, ""), self.rules)
            if prepared.note is not None:
                self.notes[field] = prepared.note
            return Prepared(step, prepared.function)
        return Prepared(step, step.function if step.function in UNGUARDED else None)

    def row(self, line: Line) -> tuple[Row, list[Problem]]:
        """Return the row with its values transformed, and its problems."""
        cells, count = line.cells, len(line.cells)
        values: dict[str, Value] = dict.fromkeys(self.rules.fields)
        for name, position in self.positions.items():
            if position < count:
                values[name] = cells[position]
        unmapped = {
            name: cells[position]
            for name, position in self.others.items()
            if position < count and cells[position] is not None
        }
        table = self.table
        row = Row(
            values,
            unmapped=unmapped,
            sheet=table.sheet,
            number=line.number,
            location=f"{self.location_prefix}{line.number}",
            section=table.section,
            title=table.title,
            headers=self.headers,
            units=self.units,
        )
        problems: list[Problem] = []
        for name, steps in self.plan:
            self.transform(name, steps, row, problems)
        location = (row.sheet, row.number)
        if not problems:
            for step in self.rules.row_transforms:
                try:
                    self.guard.call("row transform", None, step, location, row)
                except BadValue as error:
                    problems.append(Problem(None, "bad_row", f"{step.name}: {error}"))
            self.check_types(row)
            self.validate(row, location, problems)
        return row, problems

    def transform(self, name: str, steps: list[Prepared], row: Row, problems: list[Problem]) -> None:
        value = row.values[name]
        if type(value) is str and value in ERRORS:
            row.values[name] = None
            problems.append(Problem(name, "error_value", f"{name}: the cell contains the error {value}"))
            return
        for prepared in steps:
            step = prepared.step
            if value is None and not step.takes_blanks:
                continue
            try:
                if prepared.direct is not None:
                    value = prepared.direct(value)
                else:
                    arguments = (value, row) if step.takes_row else (value,)
                    value = self.guard.call("transform", name, step, (row.sheet, row.number), *arguments)
            except (ValueError, ArithmeticError, BadValue) as error:
                if prepared.direct is None and not isinstance(error, BadValue):
                    raise
                problems.append(Problem(name, "bad_value", f"{name}: {error}"))
                value = None
                break
        row.values[name] = value

    def check_types(self, row: Row) -> None:
        """Raise CodeError if the configuration's code produced a value that a cell can't hold."""
        for name, value in row.values.items():
            if value is None or isinstance(value, VALUES):
                continue
            if (
                not hasattr(value, "isoformat")
                and not hasattr(value, "as_tuple")
                and not hasattr(value, "total_seconds")
            ):
                kind = type(value).__name__
                raise CodeError(
                    "code_raised",
                    f"field {name} is a {kind} in row {row.number} of sheet {row.sheet!r}, which a cell can't hold; "
                    "return a text, a number, a date or None",
                    kind="transform",
                    field=name,
                    sheet=row.sheet,
                    row=row.number,
                )

    def validate(self, row: Row, location: tuple[str, int], problems: list[Problem]) -> None:
        for name, field in self.rules.fields.items():
            value = row.values[name]
            if value is None or value == "":
                if field.required:
                    problems.append(Problem(name, "required", f"{name}: the value is missing"))
                continue
            for step in field.validators:
                arguments = (value, row) if step.takes_row else (value,)
                self.run_validator("validator", name, step, location, arguments, problems)
        for step in self.rules.row_validators:
            self.run_validator("row validator", None, step, location, (row,), problems)

    def run_validator(
        self,
        kind: str,
        field: str | None,
        step: Step,
        location: tuple[str, int],
        arguments: tuple[object, ...],
        problems: list[Problem],
    ) -> None:
        try:
            result = self.guard.call(kind, field, step, location, *arguments)
        except BadValue as error:
            result = str(error)
        if result is None or result is True or result == "":
            return
        if not isinstance(result, (str, bool)):
            raise CodeError(
                "code_raised",
                f"{kind} {step.name} returned a {type(result).__name__}; it must return None or a message",
                kind=kind,
                function=step.name,
                field=field,
                sheet=location[0],
                row=location[1],
            )
        message = result if isinstance(result, str) else f"{step.name} rejected the value"
        problems.append(Problem(field, "invalid", f"{field}: {message}" if field else message))


def distinct_names(columns: list[Column]) -> dict[str, int]:
    """Return a distinct name for each unmapped column, with its position."""
    names: dict[str, int] = {}
    for column in columns:
        base = name = display(column.title) or f"Column {column.letter}"
        if name in names:
            name = f"{base} ({column.letter})"
        names[name] = column.position
    return names
