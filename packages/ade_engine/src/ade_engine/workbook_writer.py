"""Workbook writer: writes the output workbook as a stream of texts, numbers, dates and booleans, never formulas."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from ade_engine.limits import Limits, exceeded
from ade_engine.values import Value, letter

MAX_ROWS, MAX_CHARACTERS = 1_048_576, 32_767
# A fixed time for all entries, so that the same rows give the same bytes.
ENTRY_TIME = (1980, 1, 1, 0, 0, 0)
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
INVALID_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")
FIRST_DAY = date(1900, 3, 1)
EPOCH = date(1899, 12, 30)
BOLD, DAY, DATETIME, TIME, DURATION, TEXT = 1, 2, 3, 4, 5, 6
BATCH = 512
OPENING = (
    f'{DECLARATION}<worksheet xmlns="{MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" '
    'topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
    '<sheetFormatPr defaultRowHeight="15"/><sheetData>'
)

PLAIN = 'fontId="0" fillId="0" borderId="0"'
FORMATTED = f'{PLAIN} xfId="0" applyNumberFormat="1"'
STYLES = (
    f'{DECLARATION}<styleSheet xmlns="{MAIN}"><numFmts count="3"><numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>'
    '<numFmt numFmtId="165" formatCode="yyyy\\-mm\\-dd\\ hh:mm:ss"/>'
    '<numFmt numFmtId="166" formatCode="hh:mm:ss"/></numFmts>'
    '<fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>'
    '<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill>'
    '<fill><patternFill patternType="gray125"/></fill></fills>'
    '<borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    f'<cellStyleXfs count="1"><xf numFmtId="0" {PLAIN}/></cellStyleXfs><cellXfs count="7">'
    f'<xf numFmtId="0" {PLAIN} xfId="0"/><xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/>'
    f'<xf numFmtId="164" {FORMATTED}/><xf numFmtId="165" {FORMATTED}/><xf numFmtId="166" {FORMATTED}/>'
    f'<xf numFmtId="46" {FORMATTED}/><xf numFmtId="49" {FORMATTED} quotePrefix="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)


class SheetWriter:
    """One sheet, written row by row to a file of its own until the workbook is saved."""

    def __init__(self, workbook: WorkbookWriter, name: str, path: Path) -> None:
        self.workbook = workbook
        self.name = name
        self.path = path
        self.rows = 1
        self.truncated = 0
        self.names: Sequence[str] = ()
        self.pending: list[str] = []
        self.file = path.open("w", encoding="utf-8", newline="\n")

    def header(self, names: Sequence[str]) -> None:
        """Set the first row, in bold; call it at any time before `write_to`."""
        self.names = names

    def add(self, values: Iterable[Value]) -> None:
        """Write one row."""
        self.rows += 1
        if self.rows > MAX_ROWS:
            raise exceeded("max_rows", MAX_ROWS, f"the output sheet {self.name!r} has too many rows")
        self.pending.append(self.row(values, self.rows, 0))
        if len(self.pending) >= BATCH:
            self.flush()

    def row(self, values: Iterable[Value], number: int, style: int) -> str:
        cells = [
            self.cell(value, f"{column(index)}{number}", style)
            for index, value in enumerate(values)
            if value is not None
        ]
        return f'<row r="{number}">{"".join(cells)}</row>'

    def cell(self, value: Value, reference: str, style: int) -> str:
        kind = type(value)
        if kind is str:
            return self.text(value, reference, style)  # type: ignore[arg-type]
        if kind is bool:
            return f'<c r="{reference}" t="b"><v>{int(value)}</v></c>'  # type: ignore[arg-type]
        if kind is int or kind is Decimal or kind is float:
            return self.number(value, reference)  # type: ignore[arg-type]
        if isinstance(value, datetime):
            if value.date() >= FIRST_DAY:
                seconds = value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
                serial = (value.date() - EPOCH).days + seconds / 86_400
                return f'<c r="{reference}" s="{DATETIME}"><v>{serial:.9f}</v></c>'
            return self.text(value.isoformat(" "), reference, style)
        if isinstance(value, date):
            if value >= FIRST_DAY:
                return f'<c r="{reference}" s="{DAY}"><v>{(value - EPOCH).days}</v></c>'
            return self.text(value.isoformat(), reference, style)
        if isinstance(value, time):
            seconds = value.hour * 3600 + value.minute * 60 + value.second
            return f'<c r="{reference}" s="{TIME}"><v>{seconds / 86_400:.9f}</v></c>'
        if isinstance(value, timedelta):
            return f'<c r="{reference}" s="{DURATION}"><v>{value.total_seconds() / 86_400:.9f}</v></c>'
        if isinstance(value, (int, float, Decimal)):
            return self.number(value, reference)
        return self.text(str(value), reference, style)

    def number(self, value: int | float | Decimal, reference: str) -> str:
        if isinstance(value, float):
            if not isfinite(value):
                return self.text(str(value), reference, 0)
            return f'<c r="{reference}"><v>{value!r}</v></c>'
        digits = str(value) if isinstance(value, int) else f"{value:f}"
        # A spreadsheet keeps fifteen digits, so a longer number, such as an account number, is written as text.
        if (
            len(digits) > 15
            and sum(sign.isdigit() for sign in digits) > 15
            and (isinstance(value, int) or not value.is_finite() or len(digits) > 25)
        ):
            return self.text(digits, reference, TEXT)
        return f'<c r="{reference}"><v>{digits}</v></c>'

    def text(self, value: str, reference: str, style: int) -> str:
        if len(value) > MAX_CHARACTERS:
            value = value[: MAX_CHARACTERS - 1] + "…"
            self.truncated += 1
        if not value.isprintable():
            value = INVALID_CHARACTERS.sub("\ufffd", value).replace("\r\n", "\n").replace("\r", "\n")
        if "_x" in value:
            value = ESCAPE.sub("_x005F_", value)
        if value.startswith(FORMULA_STARTS) and not style:
            style = TEXT
        style_attribute = f' s="{style}"' if style else ""
        if "&" in value or "<" in value or ">" in value:
            value = escape(value)
        return f'<c r="{reference}"{style_attribute} t="inlineStr"><is><t xml:space="preserve">{value}</t></is></c>'

    def flush(self) -> None:
        rows = "".join(self.pending)
        self.pending.clear()
        self.workbook.grow(len(rows))
        self.file.write(rows)

    def write_to(self, target: IO[bytes]) -> None:
        """Write the whole sheet, and remove its file."""
        self.flush()
        self.file.close()
        target.write((OPENING + self.row(self.names, 1, BOLD)).encode("utf-8"))
        with self.path.open("rb") as source:
            while chunk := source.read(1 << 20):
                target.write(chunk)
        target.write(b"</sheetData></worksheet>")
        self.path.unlink()


class WorkbookWriter:
    """Collects the sheets of a workbook; `save` writes the file."""

    def __init__(self, scratch: Path, names: Sequence[str], limits: Limits) -> None:
        self.scratch = scratch
        self.limits = limits
        self.written = 0
        self.sheets: dict[str, SheetWriter] = {}
        for index, name in enumerate(names, start=1):
            self.sheets[name] = SheetWriter(self, name, scratch / f"sheet{index}.xml")

    def __enter__(self) -> WorkbookWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sheet in self.sheets.values():
            sheet.file.close()

    def grow(self, characters: int) -> None:
        self.written += characters
        if self.written > self.limits.max_output_bytes:
            raise exceeded("max_output_bytes", self.limits.max_output_bytes, "the output has too many bytes")

    def save(self, path: Path) -> None:
        """Write the workbook with all its sheets."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
            for name, text in parts(list(self.sheets)).items():
                archive.writestr(entry(name), text)
            for index, sheet in enumerate(self.sheets.values(), start=1):
                with archive.open(entry(f"xl/worksheets/sheet{index}.xml"), "w", force_zip64=True) as target:
                    sheet.write_to(target)


COLUMNS: list[str] = []


def column(index: int) -> str:
    while index >= len(COLUMNS):
        COLUMNS.append(letter(len(COLUMNS)))
    return COLUMNS[index]


def entry(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, ENTRY_TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    return info


def parts(names: list[str]) -> dict[str, str]:
    """Return the parts of the package that list its sheets."""
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    listed, sheets, relations = "", "", ""
    for index, name in enumerate(names, start=1):
        part = f"worksheets/sheet{index}.xml"
        listed += f'<Override PartName="/xl/{part}" ContentType="{kind}.worksheet+xml"/>'
        sheets += f'<sheet name={quoteattr(name)} sheetId="{index}" r:id="rId{index}"/>'
        relations += f'<Relationship Id="rId{index}" Type="{RELATIONS}/worksheet" Target="{part}"/>'
    return {
        "[Content_Types].xml": (
            f'{DECLARATION}<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
            f'<Override PartName="/xl/styles.xml" ContentType="{kind}.styles+xml"/>{listed}</Types>'
        ),
        "_rels/.rels": (
            f'{DECLARATION}<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
            f'Type="{RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
        ),
        "xl/workbook.xml": (
            f'{DECLARATION}<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets>{sheets}</sheets></workbook>'
        ),
        "xl/_rels/workbook.xml.rels": (
            f'{DECLARATION}<Relationships xmlns="{PACKAGE}/relationships">{relations}'
            f'<Relationship Id="rId{len(names) + 1}" Type="{RELATIONS}/styles" Target="styles.xml"/></Relationships>'
        ),
        "xl/styles.xml": STYLES,
    }
