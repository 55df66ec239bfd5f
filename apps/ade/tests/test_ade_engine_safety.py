"""Hostile inputs: the output has no formulas, bombs are refused, limits hold, and every refusal has a code."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from apps.ade.tests.engine_runs import SAMPLES, configuration, csv, run_here, run_process
from hypothesis import given, settings
from hypothesis import strategies as st
from openpyxl import Workbook, load_workbook

from ade_engine.limits import Limits
from ade_engine.workbook_writer import WorkbookWriter

DOCUMENT = SAMPLES / "documents" / "open-items-by-region.xlsx"
RISKY = st.tuples(st.sampled_from(["=", "+", "-", "@", "\t=", "\r=", "\n=", "'=", " =", "=="]), st.text(max_size=12))


def sheet_xml(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist() if "worksheets" in name)


@settings(max_examples=30, deadline=None)
@given(st.lists(RISKY.map("".join) | st.text(max_size=8), min_size=1, max_size=6))
def test_no_text_is_written_as_a_formula(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("written")
    with WorkbookWriter(folder, ["Data"], Limits()) as workbook:
        workbook.sheets["Data"].header(texts)
        workbook.sheets["Data"].add(texts)
        workbook.save(folder / "x.xlsx")
    xml = sheet_xml(folder / "x.xlsx")
    assert "<f" not in re.sub(r"<t xml:space=\"preserve\">[^<]*</t>", "", xml)
    cells = set(re.findall(r"<c [^>]*>", xml))
    assert all('t="inlineStr"' in cell for cell in cells)
    (_, row) = load_workbook(folder / "x.xlsx")["Data"].iter_rows()
    # openpyxl does not read the quote prefix of a text that starts with "=", so the checks above use the XML.
    assert len(row) == len(texts) or not texts[-1]


def test_a_formula_in_the_input_becomes_its_stored_value(tmp_path: Path) -> None:
    book = Workbook()
    for row in (["Name", "Age", "Remark"], ["=1+1", 3, "=cmd|' /C calc'!A0"], ["Ann", "=2+2", "+1"], ["@x", 5, "-2+3"]):
        book.active.append(row)
    book["Sheet"]["A2"].data_type = "s"
    book["Sheet"]["C2"].data_type = "s"
    book.save(tmp_path / "x.xlsx")

    outcome = run_here(configuration(tmp_path / "c"), tmp_path / "x.xlsx", tmp_path / "o")

    xml = sheet_xml(tmp_path / "o" / "output.xlsx")
    assert "<f>" not in xml
    assert "<f " not in xml
    assert '<c r="A2" s="6" t="inlineStr"><is><t xml:space="preserve">=1+1</t></is></c>' in xml
    # The formula has no stored value, so the cell is blank: it is neither calculated nor copied.
    assert outcome.sheet()[2][:2] == ["Ann", None]


def test_text_that_xml_cannot_hold_is_replaced(tmp_path: Path) -> None:
    with WorkbookWriter(tmp_path, ["Data"], Limits()) as workbook:
        workbook.sheets["Data"].add(
            ["a\x00b\ud800c\x1f", "<&>\"'", "_x0041_", "x" * 40_000, 12345678901234567890, float("nan")]
        )
        workbook.save(tmp_path / "x.xlsx")
    values = [cell.value for cell in load_workbook(tmp_path / "x.xlsx")["Data"][2]]
    assert values[:2] == ["a\ufffdb\ufffdc\ufffd", "<&>\"'"]
    assert len(str(values[3])) == 32_767
    assert values[4:] == ["12345678901234567890", "nan"]


def packed(change: Callable[[zipfile.ZipFile], None], *, without: str | None = None) -> bytes:
    """Return the sample workbook with one part changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(DOCUMENT) as source, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            if name != without:
                target.writestr(name, source.read(name))
        change(target)
    return buffer.getvalue()


SHEET = "xl/worksheets/sheet1.xml"
HEAD = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
ENTITIES = '<!DOCTYPE w [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


def with_sheet(xml: str) -> bytes:
    return packed(lambda target: target.writestr(SHEET, xml), without=SHEET)


def with_rows(rows: str, before: str = "") -> bytes:
    return with_sheet(before + HEAD + rows + "</sheetData></worksheet>")


def other_archive(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as target:
        target.writestr(name, "x")
    return buffer.getvalue()


def with_a_hole(part: str) -> bytes:
    whole = bytearray(DOCUMENT.read_bytes())
    with zipfile.ZipFile(DOCUMENT) as archive:
        at = archive.getinfo(part).header_offset + 30 + len(part) + 100
    whole[at : at + 60] = bytes(60)
    return bytes(whole)


def encrypted_entry() -> bytes:
    whole = bytearray(DOCUMENT.read_bytes())
    at = whole.find(b"PK\x01\x02")
    whole[at + 8] |= 1
    return bytes(whole)


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
REFUSED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "input_empty"),
    "blank": (b" \r\n\t\n", "input_empty"),
    "pdf": (b"%PDF-1.7 whatever", "input_not_a_spreadsheet"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(200), "input_not_a_spreadsheet"),
    "noise": (bytes(range(256)) * 40, "input_not_a_spreadsheet"),
    "html named xls": (b"\r\n<HTML><table><tr><td>Name</td></tr></table>", "input_not_a_spreadsheet"),
    "old excel": (OLE + bytes(600), "input_not_supported"),
    "password": (OLE + bytes(600) + "EncryptedPackage".encode("utf-16-le"), "input_encrypted"),
    "encrypted archive": (encrypted_entry(), "input_encrypted"),
    "another archive": (other_archive("readme.txt"), "input_not_a_spreadsheet"),
    "binary workbook": (other_archive("xl/workbook.bin"), "input_not_supported"),
    "cut off": (DOCUMENT.read_bytes()[:2000], "input_damaged"),
    "part of it overwritten": (with_a_hole(SHEET), "input_damaged"),
    "entities": (with_rows("<row><c><v>&b;</v></c></row>", before=ENTITIES), "input_dangerous"),
    "entities after a long comment": (with_rows("", before=f"<!--{'x' * 9000}-->{ENTITIES}"), "input_dangerous"),
    "very long comment": (with_rows("", before=f"<!--{'x' * 200_000}-->"), "input_dangerous"),
    "broken xml": (with_sheet(HEAD + '<row r="1"><c r="A1"><v>1</v></row>'), "input_damaged"),
    "cell outside the sheet": (with_rows('<row r="1"><c r="ZZZZ1"><v>1</v></c></row>'), "input_damaged"),
    "unknown shared string": (with_rows('<row r="1"><c r="A1" t="s"><v>999</v></c></row>'), "input_damaged"),
    "row after the last": (with_rows('<row r="99999999"><c><v>1</v></c></row>'), "input_damaged"),
    "not a number": (with_rows("<row><c><v>1x</v></c></row>"), "input_damaged"),
    "no table": (b"hello\nworld\n", "no_table_found"),
    "another table": (b"Code,Meaning\nA,1\nB,2\n", "no_table_found"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_an_unusable_input_is_refused_with_a_code(tmp_path: Path, kind: str) -> None:
    content, code = REFUSED[kind]
    (tmp_path / "x").write_bytes(content)
    outcome = run_here(configuration(tmp_path / "c"), tmp_path / "x", tmp_path / "o")
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.exit_code) == (code, 3)
    assert not (tmp_path / "o" / "output.xlsx").exists()
    assert not (tmp_path / "o" / ".scratch").exists()


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = packed(lambda target: target.writestr("xl/media/zeros.xml", "<a>" + " " * 50_000_000 + "</a>"))
    (tmp_path / "x").write_bytes(bomb)
    assert len(bomb) < 100_000
    outcome = run_here(configuration(tmp_path / "c"), tmp_path / "x", tmp_path / "o", max_expanded_bytes=40_000_000)
    assert outcome.error is not None
    assert outcome.error.code == "limit_expanded_bytes"


def people(rows: int, wide: int = 2) -> str:
    return "Name,Age\n" + "".join(f"P{index},{index % 90}{',x' * (wide - 2)}\n" for index in range(rows))


LIMITED: dict[str, tuple[str, dict[str, int]]] = {
    "limit_input_bytes": (people(50), {"max_input_bytes": 100}),
    "limit_rows": (people(50), {"max_rows": 50}),
    "limit_columns": (people(3, wide=9), {"max_columns": 8}),
    "limit_cells": (people(50), {"max_cells": 60}),
    "limit_cell_characters": (people(2) + '"' + "x" * 2000 + "\n", {"max_cell_characters": 1000}),
    "limit_output_bytes": (people(1500), {"max_output_bytes": 50_000}),
}


@pytest.mark.parametrize("code", LIMITED)
def test_every_exceeded_limit_has_its_own_code(tmp_path: Path, code: str) -> None:
    text, limits = LIMITED[code]
    outcome = run_here(configuration(tmp_path / "c"), csv(tmp_path, text), tmp_path / "o", name=None, **limits)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.exit_code) == (code, 5)
    assert not (tmp_path / "o" / "output.xlsx").exists()


def test_rows_up_to_the_limit_are_accepted(tmp_path: Path) -> None:
    outcome = run_here(configuration(tmp_path / "c"), csv(tmp_path, people(49)), tmp_path / "o", max_rows=50)
    assert outcome.error is None
    assert len(outcome.sheet()) == 50


LISTED = (
    '<Override PartName="/xl/sharedStrings.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/>'
)
TEXTS = (
    '<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>Name</t></si><si><t>Age</t></si>'
    '<si><r><t>An</t></r><r><t xml:space="preserve">na </t></r><rPh sb="0" eb="1"><t>guide</t></rPh></si>'
    "<si><t>a_x000D_b</t></si></sst>"
)
SHARING = (
    HEAD + '<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c></row><row><c t="s"><v>2</v></c><c><v>7</v></c></row>'
    '<row><c t="s"><v>3</v></c><c t="e"><v>#N/A</v></c></row><row><c t="s"><v>3</v></c><c t="str"><v>12</v></c></row>'
    "</sheetData></worksheet>"
)


def sharing() -> bytes:
    """Return a workbook with shared strings, as Excel writes it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(DOCUMENT) as source, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        types = source.read("[Content_Types].xml").decode().replace("</Types>", f"{LISTED}</Types>")
        changed = {SHEET: SHARING, "[Content_Types].xml": types}
        for name in source.namelist():
            target.writestr(name, changed.get(name) or source.read(name))
        target.writestr("xl/sharedStrings.xml", TEXTS)
    return buffer.getvalue()


def test_shared_strings_are_read_and_limited(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(sharing())
    outcome = run_here(configuration(tmp_path / "c"), tmp_path / "x", tmp_path / "o")
    assert [row[:2] for row in outcome.sheet()] == [["Name", "Age"], ["Anna", 7], ["a b", 12]]
    assert outcome.sheet("Rejected")[1][1:3] == ["age", "error_value"]

    outcome = run_here(configuration(tmp_path / "c"), tmp_path / "x", tmp_path / "p", max_shared_strings_bytes=100)
    assert outcome.error is not None
    assert outcome.error.code == "limit_shared_strings_bytes"


def test_a_sheet_with_rows_far_apart_is_read_quickly(tmp_path: Path) -> None:
    near = '<row r="1"><c t="str"><v>Name</v></c><c t="str"><v>Age</v></c></row>'
    far = '<row r="1048576"><c r="A1048576" t="inlineStr"><is><t>Zed</t></is></c><c r="B1048576"><v>9</v></c></row>'
    (tmp_path / "x").write_bytes(with_rows(near + far))
    outcome = run_here(configuration(tmp_path / "c"), tmp_path / "x", tmp_path / "o")
    assert outcome.sheet()[1] == ["Zed", 9, "Open items!A1048576"]


def test_memory_is_limited(tmp_path: Path) -> None:
    greedy = (
        "from ade_engine import Rules, headers\nrules = Rules()\nrules.field('name', detectors=[headers('name')])\n"
    )
    greedy += "@rules.transform('name')\ndef grow(value):\n    return 'x' * 4_000_000_000\n"
    code, events, _ = run_process(
        configuration(tmp_path / "c", greedy),
        csv(tmp_path, people(3)),
        tmp_path / "o",
        "--max-memory-bytes",
        str(1 << 30),
    )
    assert code == 5
    assert events[-1]["code"] == "limit_memory"
    assert events[-1]["details"]["function"] == "grow"


PIECES = st.sampled_from(
    [
        b"Name",
        b"Age",
        b",",
        b";",
        b'"',
        b"\n",
        b"\r\n",
        b"\t",
        b"=1+1",
        b"12,5",
        b"\xff",
        b"\xfe",
        b"\x00",
        b"Total",
        b"'",
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join))
def test_any_text_input_is_read_or_refused_with_a_code(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "x").write_bytes(b"Name,Age\nAnn,3\n" + content)
    outcome = run_here(configuration(folder / "c"), folder / "x", folder / "o")
    assert outcome.error is None or outcome.error.exit_code in (3, 5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 5000), st.binary(min_size=1, max_size=8))
def test_any_damaged_workbook_is_read_or_refused_with_a_code(
    tmp_path_factory: pytest.TempPathFactory, at: int, damage: bytes
) -> None:
    whole = bytearray(DOCUMENT.read_bytes())
    whole[at : at + len(damage)] = damage
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "x").write_bytes(whole)
    outcome = run_here(configuration(folder / "c"), folder / "x", folder / "o")
    assert outcome.error is None or outcome.error.exit_code in (3, 5)
