"""Running: reads one document and writes a normalised workbook and a report.

configuration ─▶ document ─▶ sheets ─▶ tables ─▶ mapped columns ─▶ rows ─▶ Data | Rejected (and Unmapped)
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
from ade_engine.sheets import Document, LimitCounter, Sheet
from ade_engine.tables import Finder, Table

ROWS_PER_PROGRESS, MAX_REJECTED_EVENTS = 5000, 20


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The inputs, the output folder and the limits of a run."""

    configuration: Path
    input: Path
    output: Path
    name: str
    limits: Limits


def run(options: RunOptions, events: Events) -> dict[str, int]:
    """Normalise a document and return the counts, or raise EngineError.

    Each output file gets its final name only when it is complete.
    """
    guard = Guard(options.configuration.resolve(), seconds=options.limits.call_seconds)
    manifest = read_manifest(options.configuration)
    configuration = {"name": manifest.name, "title": manifest.title, "version": manifest.version}
    size = options.input.stat().st_size if options.input.is_file() else 0
    events.emit(
        "run.started", engine=__version__, configuration=configuration, input={"name": options.name, "bytes": size}
    )
    scratch = options.output / ".scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        with guard.watching():
            rules = load_rules(guard.folder, guard, engine=__version__, required=manifest.engine)
            document = open_document(options.input, manifest.reading, options.limits)
            facts: dict[str, object] = {"kind": document.kind, **document.facts}
            events.emit("input.opened", **facts, sheets=[sheet.name for sheet in document.sheets][:100])
            report = Report(__version__, configuration, {"document": options.name, "bytes": size, **facts})
            try:
                with Outputs(scratch, rules, options.limits) as outputs:
                    Run(rules, guard, events, report, outputs, options.limits).read(
                        document, manifest.reading.hidden_sheets
                    )
                    outputs.save(report)
            except EngineError as error:
                report.failure = error
                report.write(scratch / "report.json")
                (scratch / "report.json").rename(options.output / "report.json")
                raise
            finally:
                document.close()
        report.write(scratch / "report.json")
        for name in ("output.xlsx", "report.json"):
            (scratch / name).rename(options.output / name)
        return report.counts()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class Run:
    """Reads the document of a run, table by table."""

    def __init__(
        self, rules: Rules, guard: Guard, events: Events, report: Report, outputs: Outputs, limits: Limits
    ) -> None:
        self.rules = rules
        self.guard = guard
        self.events = events
        self.report = report
        self.outputs = outputs
        self.counter = LimitCounter(limits)
        self.recognise = recogniser(rules)
        self.required_columns = min(rules.min_columns, sum(bool(field.detectors) for field in rules.fields.values()))
        self.rows = 0
        self.number = 1

    def read(self, document: Document, hidden_sheets: bool) -> None:
        """Read all sheets, one after another."""
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
            skipped = len(self.report.tables)
            details = (
                f"; {skipped} possible table{'s have' if skipped > 1 else ' has'} fewer than {self.required_columns} "
                "columns that the configuration recognises"
                if skipped
                else ""
            )
            raise InputError("no_table_found", f"no table was found in the document{details}", tables_seen=skipped)

    def read_sheet(self, sheet: Sheet, before: float, sheets: int) -> str | None:
        """Read one sheet; return the reason if it has no table."""
        rows_before = self.counter.rows
        finder = Finder(
            sheet.name, self.counter.limited(sheet.name, sheet.lines()), self.recognise, first_number=self.number
        )
        has_table = False
        for tables in finder.tables():
            normalisers = {table.number: self.begin(table) for table in tables}
            has_table = True
            for table, line in finder.rows(tables):
                self.rows += 1
                if self.rows % ROWS_PER_PROGRESS == 0:
                    share = sheet.share()
                    self.progress(None if share is None else round(before + share / sheets, 3))
                normaliser = normalisers[table.number]
                if normaliser is not None:
                    one, normalise = normaliser
                    row, problems = normalise.row(line)
                    if problems:
                        one.reject(problems)
                        self.outputs.reject(row, problems, line)
                        if one.rejected <= MAX_REJECTED_EVENTS:
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
        return None if has_table else "empty" if self.counter.rows == rows_before else "no_table"

    def begin(self, table: Table) -> tuple[TableReport, Normaliser] | None:
        """Map a table's columns; return None if too few are mapped."""
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
        if len(mapping.mapped) < self.required_columns:
            one.reason = "too_few_columns_mapped"
            self.events.emit(
                "table.skipped",
                table=table.number,
                reason=one.reason,
                mapped=len(mapping.mapped),
                required=self.required_columns,
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

    def finish(self, table: Table, used: tuple[TableReport, Normaliser] | None) -> None:
        if used is not None:
            one = used[0]
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
