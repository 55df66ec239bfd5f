"""Report: every decision of a run, for programs (`report.json`) and for people (the sheet `Report`).

It contains no times, so that the same run always gives the same report.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ade_engine.errors import EngineError
from ade_engine.mapping import Mapped, Mapping, Rival, Unmapped
from ade_engine.normalising import Problem
from ade_engine.rules import Field
from ade_engine.tables import Table
from ade_engine.values import Value

MAX_TABLES = 1000


@dataclass
class TableReport:
    """The decisions about one table. `reason` says why it was skipped."""

    table: Table
    mapping: Mapping
    notes: dict[str, str] = field(default_factory=dict)
    reason: str | None = None
    written: int = 0
    rejected: int = 0
    problems: Counter[str] = field(default_factory=Counter)

    def reject(self, problems: list[Problem]) -> None:
        """Count a rejected row under its first problem."""
        self.rejected += 1
        first = problems[0]
        self.problems[f"{first.field or 'row'}: {first.code}"] += 1


@dataclass
class Report:
    """The decisions of a run."""

    engine: str
    configuration: dict[str, str]
    input: dict[str, object]
    sheets: list[dict[str, object]] = field(default_factory=list)
    tables: list[TableReport] = field(default_factory=list)
    truncated_texts: int = 0
    failure: EngineError | None = None

    def counts(self) -> dict[str, int]:
        """Return the totals over all tables that were used."""
        used = [one for one in self.tables if one.reason is None]
        return {
            "tables": len(used),
            "rows_read": sum(one.table.read for one in used),
            "rows_written": sum(one.written for one in used),
            "rows_rejected": sum(one.rejected for one in used),
        }

    def write(self, path: Path) -> None:
        """Write report.json."""
        failure = self.failure and {
            "code": self.failure.code,
            "message": self.failure.message,
            "details": self.failure.details,
        }
        report = {
            "engine": self.engine,
            "configuration": self.configuration,
            "input": self.input,
            "result": "failed" if failure else "finished",
            "failure": failure,
            "counts": self.counts(),
            "truncated_texts": self.truncated_texts,
            "sheets": self.sheets,
            "tables": [as_json(one) for one in self.tables[:MAX_TABLES]],
        }
        path.write_text(json.dumps(report, ensure_ascii=False, indent=1, default=str) + "\n", "utf-8", errors="replace")

    def lines(self) -> Iterator[tuple[Value, ...]]:
        """Yield the rows of the sheet `Report`, with the columns of REPORT_HEADER."""
        for name, value in {**self.input, **self.configuration}.items():
            yield (None, None, "document" if name in self.input else "configuration", name, plain(value), None, None)
        for sheet in self.sheets:
            if sheet["skipped"]:
                yield (None, str(sheet["name"]), "sheet", None, "skipped", None, str(sheet["skipped"]))
        for one in self.tables[:MAX_TABLES]:
            yield from lines_of(one)


REPORT_HEADER = ("Table", "Location", "Item", "Name", "Decision", "Score", "Reason")


def lines_of(one: TableReport) -> Iterator[tuple[Value, ...]]:
    table, number = one.table, one.table.number
    rows = table.header_rows
    header = (
        "no header row"
        if rows is None
        else f"header in row {rows[0]}"
        if rows[0] == rows[1]
        else f"header in rows {rows[0]} to {rows[1]}"
    )
    yield (
        number,
        f"{table.sheet}!{table.span}",
        "table",
        table.title or None,
        "skipped" if one.reason else "used",
        None,
        one.reason or header,
    )
    for mapped in one.mapping.mapped:
        reasons = [f"{name} {score:+g}" for name, score in mapped.scores]
        reasons += [text for text in (mapped.note, one.notes.get(mapped.field.name)) if text]
        yield (
            number,
            mapped.column.letter,
            "column",
            mapped.column.title,
            mapped.field.name,
            mapped.score,
            "; ".join(reasons),
        )
    for unmapped in one.mapping.unmapped:
        best = unmapped.best
        nearest = f"the nearest field is {best.field} with {best.score:g}" if best else None
        yield (
            number,
            unmapped.column.letter,
            "column",
            unmapped.column.title,
            "not mapped",
            best.score if best else None,
            nearest,
        )
    for missing in one.mapping.missing:
        yield (number, None, "field", missing.name, "no column", None, "required" if missing.required else None)
    for row, reason, text in table.notes:
        yield (number, f"{table.sheet}!{row}", "row", text, "skipped", None, reason)
    for reason, count in sorted(table.skipped.items()):
        yield (number, None, "rows skipped", reason, str(count), None, None)
    for reason, count in sorted(one.problems.items()):
        yield (number, None, "rows rejected", reason, str(count), None, None)
    yield (number, None, "rows", "read, written, rejected", f"{table.read}, {one.written}, {one.rejected}", None, None)


def as_json(one: TableReport) -> dict[str, object]:
    table = one.table
    return {
        "table": table.number,
        "sheet": table.sheet,
        "title": table.title,
        "header_rows": table.header_rows,
        "range": table.span,
        "skipped": one.reason,
        "mapped": [mapped_event(mapped, one.notes.get(mapped.field.name)) for mapped in one.mapping.mapped],
        "unmapped": [unmapped_event(unmapped) for unmapped in one.mapping.unmapped],
        "missing": [missing_event(missing) for missing in one.mapping.missing],
        "rows_read": table.read,
        "rows_written": one.written,
        "rows_rejected": one.rejected,
        "rows_skipped": dict(sorted(table.skipped.items())),
        "skipped_rows": [{"row": row, "reason": reason, "text": text} for row, reason, text in table.notes],
        "rejected_reasons": dict(sorted(one.problems.items())),
    }


def mapped_event(mapped: Mapped, reading: str | None) -> dict[str, object]:
    """Return the fields of a mapped column for the event and for report.json."""
    return {
        "column": mapped.column.letter,
        "header": mapped.column.title,
        "unit": mapped.column.unit,
        "field": mapped.field.name,
        "score": mapped.score,
        "scores": [{"detector": name, "score": score} for name, score in mapped.scores],
        "runner_up": mapped.runner_up and rival_event(mapped.runner_up),
        "note": "; ".join(text for text in (mapped.note, reading) if text) or None,
    }


def unmapped_event(unmapped: Unmapped) -> dict[str, object]:
    """Return the fields of an unmapped column for the event and for report.json."""
    column = unmapped.column
    return {"column": column.letter, "header": column.title, "best": unmapped.best and rival_event(unmapped.best)}


def missing_event(missing: Field) -> dict[str, object]:
    """Describe a field without a column, for the event and for report.json."""
    return {"field": missing.name, "required": missing.required}


def rival_event(rival: Rival) -> dict[str, object]:
    return {"column": rival.column, "field": rival.field, "score": rival.score}


def plain(value: object) -> Value:
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
