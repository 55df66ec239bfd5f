"""Normalising: a line of a table becomes a row of fields, or is rejected with reasons."""

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
from ade_engine.transforms import Prepares, lower, text, upper
from ade_engine.values import ERRORS, Line, Value, shown

TRUSTED = {text, upper, lower}
VALUES = (str, int, float, Decimal, date, time, timedelta)


@dataclass(frozen=True)
class Problem:
    """Why a row is rejected."""

    field: str | None
    code: str
    message: str


@dataclass(frozen=True)
class Prepared:
    """A step of a field. `direct` is one of the engine's own functions, which needs no guard."""

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
        self.before = f"{table.sheet}!{table.columns[0].letter}"
        self.others = distinct([one.column for one in mapping.unmapped])
        self.notes: dict[str, str] = {}
        # A field without a column has work to do only if one of its transforms takes blanks.
        self.plan = [
            (name, [self.prepared(name, step, columns.get(name)) for step in field.transforms])
            for name, field in rules.fields.items()
            if name in columns or any(step.takes_blanks for step in field.transforms)
        ]

    def prepared(self, field: str, step: Step, column: Column | None) -> Prepared:
        if isinstance(step.function, Prepares):
            made = step.function.prepare(column or Column(0, ""), self.rules)
            if made.note is not None:
                self.notes[field] = made.note
            return Prepared(step, made.function)
        return Prepared(step, step.function if step.function in TRUSTED else None)

    def row(self, line: Line) -> tuple[Row, list[Problem]]:
        """The row with its values transformed, and what is wrong with it."""
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
            place=f"{self.before}{line.number}",
            section=table.section,
            title=table.title,
            headers=self.headers,
            units=self.units,
        )
        problems: list[Problem] = []
        for name, steps in self.plan:
            self.transform(name, steps, row, problems)
        place = (row.sheet, row.number)
        if not problems:
            for step in self.rules.row_transforms:
                try:
                    self.guard.call("row transform", None, step, place, row)
                except BadValue as error:
                    problems.append(Problem(None, "bad_row", f"{step.name}: {error}"))
            self.keep_to_values(row)
            self.validate(row, place, problems)
        return row, problems

    def transform(self, name: str, steps: list[Prepared], row: Row, problems: list[Problem]) -> None:
        value = row.values[name]
        if type(value) is str and value in ERRORS:
            row.values[name] = None
            problems.append(Problem(name, "error_value", f"{name}: the cell holds the error {value}"))
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

    def keep_to_values(self, row: Row) -> None:
        """What the code made must be something that a cell can hold."""
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
                    f"field {name} has a {kind} in row {row.number} of sheet {row.sheet!r}: a cell can't hold that",
                    kind="transform",
                    field=name,
                    sheet=row.sheet,
                    row=row.number,
                )

    def validate(self, row: Row, place: tuple[str, int], problems: list[Problem]) -> None:
        for name, field in self.rules.fields.items():
            value = row.values[name]
            if value is None or value == "":
                if field.required:
                    problems.append(Problem(name, "required", f"{name}: there is no value"))
                continue
            for step in field.validators:
                arguments = (value, row) if step.takes_row else (value,)
                self.judge("validator", name, step, place, arguments, problems)
        for step in self.rules.row_validators:
            self.judge("row validator", None, step, place, (row,), problems)

    def judge(
        self,
        what: str,
        field: str | None,
        step: Step,
        place: tuple[str, int],
        arguments: tuple[object, ...],
        problems: list[Problem],
    ) -> None:
        try:
            wrong = self.guard.call(what, field, step, place, *arguments)
        except BadValue as error:
            wrong = str(error)
        if wrong is None or wrong is True or wrong == "":
            return
        if not isinstance(wrong, (str, bool)):
            raise CodeError(
                "code_raised",
                f"{what} {step.name} gave a {type(wrong).__name__}; it gives None or what is wrong",
                kind=what,
                function=step.name,
                field=field,
                sheet=place[0],
                row=place[1],
            )
        words = wrong if isinstance(wrong, str) else f"{step.name} says no"
        problems.append(Problem(field, "invalid", f"{field}: {words}" if field else words))


def distinct(columns: list[Column]) -> dict[str, int]:
    """A name for each column that no field took, all different."""
    names: dict[str, int] = {}
    for column in columns:
        base = name = shown(column.title) or f"Column {column.letter}"
        if name in names:
            name = f"{base} ({column.letter})"
        names[name] = column.position
    return names
