"""One run: a document goes in, a normalised workbook and a report come out.

configuration ─▶ document ─▶ sheets ─▶ tables ─▶ columns mapped ─▶ rows ─▶ Data | Rejected (and Unmapped)
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ade_engine import __version__
from ade_engine.documents import open_document
from ade_engine.errors import EngineError, InputError
from ade_engine.events import Events
from ade_engine.guard import Guard
from ade_engine.limits import Limits
from ade_engine.loading import load_rules, read_manifest
from ade_engine.mapping import map_columns, recogniser
from ade_engine.normalising import Normaliser
from ade_engine.outputs import Outputs
from ade_engine.report import Report, TableReport, mapped_event, missing_event, unmapped_event
from ade_engine.rules import Rules
from ade_engine.sheets import Document, Meter, Sheet
from ade_engine.tables import Finder, Table

PROGRESS, REJECTED_EVENTS = 5000, 20


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to run."""

    configuration: Path
    input: Path
    output: Path
    name: str
    limits: Limits


def run(order: Order, events: Events) -> dict[str, int]:
    """Run an order, or raise EngineError. What has its final name in the output folder is whole."""
    guard = Guard(order.configuration.resolve(), seconds=order.limits.call_seconds)
    manifest = read_manifest(order.configuration)
    configuration = {"name": manifest.name, "title": manifest.title, "version": manifest.version}
    size = order.input.stat().st_size if order.input.is_file() else 0
    events.emit(
        "run.started", engine=__version__, configuration=configuration, input={"name": order.name, "bytes": size}
    )
    scratch = order.output / ".scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        with guard.watching():
            rules = load_rules(guard.folder, guard, engine=__version__, wanted=manifest.engine)
            document = open_document(order.input, manifest.reading, order.limits)
            facts: dict[str, object] = {"kind": document.kind, **document.facts}
            events.emit("input.opened", **facts, sheets=[sheet.name for sheet in document.sheets][:100])
            report = Report(__version__, configuration, {"document": order.name, "bytes": size, **facts})
            try:
                with Outputs(scratch, rules, order.limits) as outputs:
                    Run(rules, guard, events, report, outputs, order.limits).read(
                        document, manifest.reading.hidden_sheets
                    )
                    outputs.save(report)
            except EngineError as error:
                report.failure = error
                report.write(scratch / "report.json")
                (scratch / "report.json").rename(order.output / "report.json")
                raise
            finally:
                document.close()
        report.write(scratch / "report.json")
        for name in ("output.xlsx", "report.json"):
            (scratch / name).rename(order.output / name)
        return report.counts()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class Run:
    """The part of a run that goes through the document."""

    def __init__(
        self, rules: Rules, guard: Guard, events: Events, report: Report, outputs: Outputs, limits: Limits
    ) -> None:
        self.rules = rules
        self.guard = guard
        self.events = events
        self.report = report
        self.outputs = outputs
        self.meter = Meter(limits)
        self.recognise = recogniser(rules)
        self.needed = min(rules.min_columns, sum(bool(field.detectors) for field in rules.fields.values()))
        self.rows = 0
        self.number = 1

    def read(self, document: Document, hidden_sheets: bool) -> None:
        """All the sheets, one after another."""
        for index, sheet in enumerate(document.sheets):
            reason = (
                "hidden"
                if sheet.hidden and not hidden_sheets
                else self.read_sheet(sheet, index / len(document.sheets), len(document.sheets))
            )
            self.report.sheets.append({"name": sheet.name, "hidden": sheet.hidden, "skipped": reason})
            if reason is not None:
                self.events.emit("sheet.skipped", sheet=sheet.name, reason=reason)
        if not self.report.counts()["tables"]:
            seen = len(self.report.tables)
            words = (
                f"; {seen} looked like one, but had fewer than {self.needed} columns that the configuration knows"
                if seen
                else ""
            )
            raise InputError("no_table_found", f"no table was found in the document{words}", tables_seen=seen)

    def read_sheet(self, sheet: Sheet, before: float, sheets: int) -> str | None:
        """One sheet; the reason if nothing was taken from it."""
        counted = self.meter.rows
        finder = Finder(
            sheet.name, self.meter.bounded(sheet.name, sheet.lines()), self.recognise, first_number=self.number
        )
        found = False
        for tables in finder.tables():
            normalisers = {table.number: self.begin(table) for table in tables}
            found = True
            for table, line in finder.rows(tables):
                self.rows += 1
                if self.rows % PROGRESS == 0:
                    share = sheet.share()
                    self.progress(None if share is None else round(before + share / sheets, 3))
                normaliser = normalisers[table.number]
                if normaliser is not None:
                    one, normalise = normaliser
                    row, problems = normalise.row(line)
                    if problems:
                        one.reject(problems)
                        self.outputs.reject(row, problems, line)
                        if one.rejected <= REJECTED_EVENTS:
                            first = problems[0]
                            self.events.emit(
                                "row.rejected",
                                table=table.number,
                                sheet=sheet.name,
                                row=line.number,
                                field=first.field,
                                code=first.code,
                                message=first.message[:300],
                                count=self.outputs.rejected,
                            )
                    else:
                        one.written += 1
                        self.outputs.accept(row)
            for table in tables:
                self.finish(table, normalisers[table.number])
        self.number = finder.number
        return None if found else "empty" if self.meter.rows == counted else "no_table"

    def begin(self, table: Table) -> tuple[TableReport, Normaliser] | None:
        """Map a table's columns; None if it is none of ours."""
        rows = table.header_rows
        self.events.emit(
            "table.found",
            table=table.number,
            sheet=table.sheet,
            header_rows=rows and list(rows),
            columns=len(table.columns),
            range=table.span,
            title=table.title[:200],
        )
        mapping = map_columns(table.columns, self.rules, self.guard, table.sheet, rows[1] if rows else 1)
        one = TableReport(table, mapping)
        self.report.tables.append(one)
        if len(mapping.mapped) < self.needed:
            one.reason = "too_few_columns_mapped"
            self.events.emit(
                "table.skipped", table=table.number, reason=one.reason, mapped=len(mapping.mapped), needed=self.needed
            )
            return None
        normaliser = Normaliser(table, mapping, self.rules, self.guard)
        one.notes = normaliser.notes
        for mapped in mapping.mapped:
            self.events.emit(
                "column.mapped", table=table.number, **mapped_event(mapped, one.notes.get(mapped.field.name))
            )
        for unmapped in mapping.unmapped:
            self.events.emit("column.unmapped", table=table.number, **unmapped_event(unmapped))
        for missing in mapping.missing:
            if missing.detectors:
                self.events.emit("field.missing", table=table.number, **missing_event(missing))
        return one, normaliser

    def finish(self, table: Table, taken: tuple[TableReport, Normaliser] | None) -> None:
        if taken is not None:
            one = taken[0]
            self.events.emit(
                "table.finished",
                table=table.number,
                rows_read=table.read,
                rows_written=one.written,
                rows_rejected=one.rejected,
                rows_skipped=dict(sorted(table.skipped.items())),
            )

    def progress(self, share: float | None) -> None:
        self.events.emit(
            "progress",
            rows_read=self.rows,
            rows_written=self.outputs.accepted,
            rows_rejected=self.outputs.rejected,
            share=share,
        )
