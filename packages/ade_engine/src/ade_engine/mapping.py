"""Mapping: assigns columns to fields, and keeps the scores that explain each choice."""

from __future__ import annotations

from dataclasses import dataclass

from ade_engine.assignment import assign
from ade_engine.columns import Column
from ade_engine.detectors import headers, not_headers
from ade_engine.errors import CodeError
from ade_engine.guard import Guard
from ade_engine.header_rows import Recognise
from ade_engine.rules import Field, Rules
from ade_engine.texts import normal, similarity

MAX_COLUMNS = 300


@dataclass(frozen=True)
class Rival:
    """The next best choice: another column for the same field, or another field for the same column."""

    column: str
    field: str
    score: float


@dataclass(frozen=True)
class Mapped:
    """A column with its field, and the detectors' scores."""

    column: Column
    field: Field
    score: float
    scores: tuple[tuple[str, float], ...]
    runner_up: Rival | None
    note: str | None


@dataclass(frozen=True)
class Unmapped:
    """A column without a field, and the field with the highest score."""

    column: Column
    best: Rival | None


@dataclass(frozen=True)
class Mapping:
    """The mapping of all columns of a table, and the fields that have no column."""

    mapped: tuple[Mapped, ...]
    unmapped: tuple[Unmapped, ...]
    missing: tuple[Field, ...]


def map_columns(columns: tuple[Column, ...], rules: Rules, guard: Guard, sheet: str, row: int) -> Mapping:
    """Score every column for every field, and choose the best assignment overall."""
    fields = [field for field in rules.fields.values() if field.detectors]
    scored = [[detect(field, column, guard, (sheet, row)) for column in columns[:MAX_COLUMNS]] for field in fields]
    totals = [[round(sum(score for _, score in scores), 3) for scores in line] for line in scored]
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
            scores = tuple(one for one in scored[index][position] if one[1])
            mapped.append(Mapped(columns[position], fields[index], score, scores, rival, note))
    mapped.sort(key=lambda one: one.column.position)
    taken = {one.column.position for one in mapped}
    unmapped = tuple(
        Unmapped(column, nearest(position, column, fields, totals))
        for position, column in enumerate(columns)
        if column.position not in taken
    )
    names = {one.field.name for one in mapped}
    return Mapping(tuple(mapped), unmapped, tuple(field for field in rules.fields.values() if field.name not in names))


def detect(field: Field, column: Column, guard: Guard, location: tuple[str, int]) -> list[tuple[str, float]]:
    """Return the name and the score of each of the field's detectors for a column."""
    scores = []
    for step in field.detectors:
        score = guard.call("detector", field.name, step, location, column)
        if score is None:
            score = 0.0
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not -1 <= score <= 1:
            raise CodeError(
                "code_raised",
                f"detector {step.name} of field {field.name} returned {str(score)[:60]} for column {column.letter}; "
                "it must return a number from -1 to 1",
                kind="detector",
                function=step.name,
                field=field.name,
                sheet=location[0],
                row=location[1],
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
    """Return the strongest rival, and a note if its score is at least as high as the score of the choice."""
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
            return rival, f"column {rival.column} has the same score; the leftmost free column is chosen"
        return rival, f"field {rival.field} has the same score for this column; this choice gives the highest total"
    other = f"column {rival.column}" if same_field else f"field {rival.field}"
    return rival, f"{other} has a higher score, but matching it elsewhere gives a higher total"


def nearest(position: int, column: Column, fields: list[Field], totals: list[list[float]]) -> Rival | None:
    if position >= MAX_COLUMNS:
        return None
    scored = [Rival(column.letter, field.name, totals[index][position]) for index, field in enumerate(fields)]
    best = max(scored, key=lambda one: one.score, default=None)
    return best if best is not None and best.score > 0 else None


def recogniser(rules: Rules) -> Recognise:
    """Return a function that counts the fields whose `headers` match a line of labels; it calls no user code."""
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
        if (matching := cache.get(label)) is None:
            group, _, header = label.partition("\n")
            names = {normal(header), normal(f"{group} {header}")}
            matching = frozenset(
                field
                for field, functions in known
                if any(
                    similarity(alias, name) >= 0.7
                    for function in functions
                    for alias in function.names
                    for name in names
                )
            )
            if len(cache) < 20_000:
                cache[label] = matching
        return matching

    def recognise(labels: tuple[str, ...]) -> int:
        recognised: set[str] = set()
        # Labels that match only one field come first, so that the others count for the remaining fields.
        for fields in sorted(map(fields_of, labels), key=len):
            new = fields - recognised
            if new:
                recognised.add(min(new))
        return len(recognised)

    return recognise
