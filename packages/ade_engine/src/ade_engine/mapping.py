"""Mapping: which column is which field, with every score that led to it."""

from __future__ import annotations

from dataclasses import dataclass

from ade_engine.assignment import assign
from ade_engine.columns import Column
from ade_engine.detectors import headers, not_headers
from ade_engine.errors import CodeError
from ade_engine.guard import Guard
from ade_engine.header_rows import Recognise
from ade_engine.rules import Field, Rules
from ade_engine.texts import likeness, normal

MOST_COLUMNS = 300


@dataclass(frozen=True)
class Rival:
    """What nearly took a place: another column for the same field, or another field for the same column."""

    column: str
    field: str
    score: float


@dataclass(frozen=True)
class Mapped:
    """A column that has a field, and why."""

    column: Column
    field: Field
    score: float
    because: tuple[tuple[str, float], ...]
    runner_up: Rival | None
    note: str | None


@dataclass(frozen=True)
class Unmapped:
    """A column that no field took, and the field that came nearest."""

    column: Column
    best: Rival | None


@dataclass(frozen=True)
class Mapping:
    """The whole of it."""

    mapped: tuple[Mapped, ...]
    unmapped: tuple[Unmapped, ...]
    missing: tuple[Field, ...]


def map_columns(columns: tuple[Column, ...], rules: Rules, guard: Guard, sheet: str, row: int) -> Mapping:
    """Score every column for every field, and take the best assignment overall."""
    fields = [field for field in rules.fields.values() if field.detectors]
    judged = [[judge(field, column, guard, (sheet, row)) for column in columns[:MOST_COLUMNS]] for field in fields]
    totals = [[round(sum(score for _, score in because), 3) for because in line] for line in judged]
    usable = [
        [score if score >= field.threshold else None for score in line]
        for field, line in zip(fields, totals, strict=True)
    ]
    chosen = assign(usable)
    mapped = []
    for index, position in enumerate(chosen):
        if position is not None:
            score = totals[index][position]
            rival, note = explain(index, position, fields, columns, totals, chosen)
            because = tuple(one for one in judged[index][position] if one[1])
            mapped.append(Mapped(columns[position], fields[index], score, because, rival, note))
    mapped.sort(key=lambda one: one.column.position)
    taken = {one.column.position for one in mapped}
    unmapped = tuple(
        Unmapped(column, nearest(position, column, fields, totals))
        for position, column in enumerate(columns)
        if column.position not in taken
    )
    found = {one.field.name for one in mapped}
    return Mapping(tuple(mapped), unmapped, tuple(field for field in rules.fields.values() if field.name not in found))


def judge(field: Field, column: Column, guard: Guard, place: tuple[str, int]) -> list[tuple[str, float]]:
    scores = []
    for step in field.detectors:
        score = guard.call("detector", field.name, step, place, column)
        if score is None:
            score = 0.0
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not -1 <= score <= 1:
            raise CodeError(
                "code_raised",
                f"detector {step.name} of field {field.name} gave {str(score)[:60]} ({column.letter}), not -1 to 1",
                kind="detector",
                function=step.name,
                field=field.name,
                sheet=place[0],
                row=place[1],
            )
        scores.append((step.name, round(float(score), 3)))
    return scores


def explain(
    index: int,
    position: int,
    fields: list[Field],
    columns: tuple[Column, ...],
    totals: list[list[float]],
    chosen: list[int | None],
) -> tuple[Rival | None, str | None]:
    """The strongest rival for this place, and words if the choice was not the obvious one."""
    score = totals[index][position]
    rivals = [
        Rival(columns[other].letter, fields[index].name, totals[index][other])
        for other in range(len(totals[index]))
        if other != position and totals[index][other] > 0
    ] + [
        Rival(columns[position].letter, fields[other].name, totals[other][position])
        for other in range(len(fields))
        if other != index and totals[other][position] > 0
    ]
    rival = max(rivals, key=lambda one: one.score, default=None)
    if rival is None or rival.score < score:
        return rival, None
    same_field = rival.field == fields[index].name
    if rival.score == score:
        if same_field:
            return rival, f"column {rival.column} has the same score; the one further left is taken"
        return rival, f"field {rival.field} has the same score for this column; this way the sum is highest"
    what = f"column {rival.column}" if same_field else f"field {rival.field}"
    return rival, f"{what} scores more here, but is better used elsewhere"


def nearest(position: int, column: Column, fields: list[Field], totals: list[list[float]]) -> Rival | None:
    if position >= MOST_COLUMNS:
        return None
    scored = [Rival(column.letter, field.name, totals[index][position]) for index, field in enumerate(fields)]
    best = max(scored, key=lambda one: one.score, default=None)
    return best if best is not None and best.score > 0 else None


def recogniser(rules: Rules) -> Recognise:
    """Counts the fields whose `headers` know a line of labels; the configuration's own functions are not asked."""
    known = [
        (
            field.name,
            [
                step.function
                for step in field.detectors
                if isinstance(step.function, headers) and not isinstance(step.function, not_headers)
            ],
        )
        for field in rules.fields.values()
    ]
    cache: dict[str, frozenset[str]] = {}

    def fields_of(label: str) -> frozenset[str]:
        if (found := cache.get(label)) is None:
            group, _, header = label.partition("\n")
            names = {normal(header), normal(f"{group} {header}")}
            found = frozenset(
                field
                for field, functions in known
                if any(
                    likeness(alias, name) >= 0.7 for function in functions for alias in function.names for name in names
                )
            )
            if len(cache) < 20_000:
                cache[label] = found
        return found

    def recognise(labels: tuple[str, ...]) -> int:
        recognised: set[str] = set()
        # Those that can mean one thing only come first, so that the others get what is left.
        for fields in sorted(map(fields_of, labels), key=len):
            new = fields - recognised
            if new:
                recognised.add(min(new))
        return len(recognised)

    return recognise
