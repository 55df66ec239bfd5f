"""Outputs: writes the sheets of the normalised workbook, row by row."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from ade_engine.limits import Limits
from ade_engine.normalising import Problem
from ade_engine.report import REPORT_HEADER, Report
from ade_engine.rows import Row
from ade_engine.rules import Rules
from ade_engine.values import Line, Value, letter
from ade_engine.workbook_writer import WorkbookWriter

SOURCE = "Source"
MAX_UNMAPPED = 2000


class Outputs:
    """The output workbook.

    `Data` has the fields of each good row and its source, `Unmapped` the other columns of these rows, and `Rejected`
    the rejected rows with the reasons.
    """

    def __init__(self, scratch: Path, rules: Rules, limits: Limits) -> None:
        self.path = scratch / "output.xlsx"
        self.fields = [field for field in rules.fields.values() if field.output]
        self.names = [field.name for field in self.fields]
        self.unmapped: dict[str, int] = {}
        self.width = 0
        self.accepted = 0
        self.rejected = 0
        self.workbook = WorkbookWriter(scratch, ("Data", "Unmapped", "Rejected", "Report"), limits)

    def __enter__(self) -> Outputs:
        self.workbook.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.workbook.__exit__(kind, error, trace)

    def accept(self, row: Row) -> None:
        """Write a good row."""
        self.accepted += 1
        values = row.values
        location = row.location
        self.workbook.sheets["Data"].add([*[values[name] for name in self.names], location])
        if row.unmapped:
            cells: list[Value] = [None] * len(self.unmapped)
            for name, value in row.unmapped.items():
                index = self.unmapped.get(name)
                if index is None:
                    if len(self.unmapped) >= MAX_UNMAPPED:
                        continue
                    index = self.unmapped[name] = len(cells)
                    cells.append(None)
                cells[index] = value
            self.workbook.sheets["Unmapped"].add([location, *cells])

    def reject(self, row: Row, problems: list[Problem], line: Line) -> None:
        """Write a rejected row, with its cells as they are in the file."""
        self.rejected += 1
        self.width = max(self.width, len(line.cells))
        first = problems[0]
        reason = "; ".join(problem.message for problem in problems[:10])
        self.workbook.sheets["Rejected"].add([row.location, first.field, first.code, reason, *line.cells])

    def save(self, report: Report) -> None:
        """Write the sheet `Report`, and save the workbook."""
        sheets = self.workbook.sheets
        sheets["Data"].header([*(field.label for field in self.fields), SOURCE])
        sheets["Unmapped"].header([SOURCE, *self.unmapped])
        sheets["Rejected"].header([SOURCE, "Field", "Code", "Reason", *map(letter, range(self.width))])
        sheets["Report"].header(REPORT_HEADER)
        report.truncated_texts = sum(sheet.truncated for sheet in sheets.values())
        for line in report.lines():
            sheets["Report"].add(line)
        self.workbook.save(self.path)
