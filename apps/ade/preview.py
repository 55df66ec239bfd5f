"""Preview: a script that writes the first rows of each sheet of a workbook as JSON, run by an environment's Python."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime, time
from typing import Any

ROWS, COLUMNS, CHARACTERS = 50, 40, 200


def main(workbook: str, target: str) -> None:
    from openpyxl import load_workbook

    book = load_workbook(workbook, read_only=True, data_only=True)
    sheets = [_sheet(sheet) for sheet in book.worksheets]
    with open(target, "x", encoding="utf-8") as file:
        json.dump({"sheets": sheets}, file)


def _sheet(sheet: Any) -> dict[str, Any]:
    rows = [
        [_text(value) for value in row] for row in sheet.iter_rows(max_row=ROWS + 2, max_col=COLUMNS, values_only=True)
    ]
    width = max((index + 1 for row in rows for index, text in enumerate(row) if text), default=0)
    return {"name": sheet.title, "rows": [row[:width] for row in rows[: ROWS + 1]], "more": len(rows) > ROWS + 1}


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a spreadsheet shows 36500, not 36500.0
    text = value.isoformat() if isinstance(value, date | time) else str(value)
    return text[:CHARACTERS]


if __name__ == "__main__":
    main(*sys.argv[1:])
