"""The sample documents, one by one, and the exact output for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from apps.ade.samples import make
from apps.ade.tests.engine_runs import INVOICES, ROSTER, SAMPLES, Outcome, run_here
from openpyxl import load_workbook

INVOICE_HEADER = (
    "Supplier,Invoice number,Invoice date,Due date,Net amount,VAT,Gross amount,Currency,Purchase order,Source"
)
ROSTER_HEADER = "Employee ID,Name,Department,Job title,Start date,Weekly hours,Annual salary,E-mail,Source"


def normalised(configuration: Path, name: str, tmp_path: Path) -> Outcome:
    outcome = run_here(configuration, SAMPLES / "documents" / name, tmp_path / "out")
    assert outcome.error is None
    return outcome


def reasons(outcome: Outcome) -> list[list[Any]]:
    """Return the location, the field and the code of every rejected row."""
    return [row[:3] for row in outcome.sheet("Rejected")[1:]]


@pytest.mark.contract("Q20")
def test_a_workbook_with_a_title_units_a_total_and_footnotes_is_normalised(tmp_path: Path) -> None:
    outcome = normalised(INVOICES, "invoices-march-2026.xlsx", tmp_path)

    meyer = "Meyer & Söhne GmbH"
    assert outcome.sheet() == [
        INVOICE_HEADER.split(","),
        ["Baltic Timber OÜ", "BT-10233", "2026-03-02", "2026-04-01", 1250, 275, 1525, "EUR", None, "March 2026!A5"],
        [meyer, "2026/0417", "2026-03-05", "2026-03-19", 980.5, 186.3, 1166.8, "EUR", None, "March 2026!A6"],
        ["Total Energies", "TE-99812", "2026-03-09", "2026-04-08", 412.19, 82.44, 494.63, "EUR", None, "March 2026!A7"],
        [make.FORMULA, "X-1001", "2026-03-11", None, 100, 20, 120, "EUR", None, "March 2026!A8"],
        [meyer, "2026/0502", "2026-03-27", "2026-04-10", 60, 11.4, 71.4, "EUR", None, "March 2026!A10"],
    ]
    assert outcome.sheet("Unmapped")[:3] == [
        ["Source", "VAT rate", "Remarks"],
        ["March 2026!A5", 0.22, None],
        ["March 2026!A6", 0.19, "urgent"],
    ]
    assert reasons(outcome) == [["March 2026!A11", "invoice_number", "invalid"], ["March 2026!A12", None, "invalid"]]
    (table,) = outcome.report["tables"]
    assert table["title"] == "Incoming invoices – March 2026 / Prepared by: accounts payable, 2026-04-02"
    assert table["rows_skipped"] == {"blank": 2, "note": 2, "total": 1}


@pytest.mark.contract("Q20")
def test_a_german_export_with_decimal_commas_is_normalised(tmp_path: Path) -> None:
    outcome = normalised(INVOICES, "rechnungen-quartal-1.csv", tmp_path)

    assert outcome.of("input.opened")[0]["encoding"] == "cp1252"
    assert outcome.of("input.opened")[0]["delimiter"] == ";"
    assert outcome.sheet() == [
        INVOICE_HEADER.split(","),
        [
            "Müller Werkzeuge",
            "RE-2026-0012",
            "2026-01-07",
            "2026-01-21",
            1234.5,
            234.56,
            1469.06,
            "EUR",
            None,
            "Sheet1!A6",
        ],
        ["Schrauben; Dübel & Co.", "88121", "2026-01-15", None, 89.9, 17.08, 106.98, "EUR", None, "Sheet1!A7"],
        ["Stadtwerke Nürnberg", "V-4711-01", "2026-01-31", "2026-02-14", 2000, 380, 2380, "EUR", None, "Sheet1!A8"],
        ["Müller Werkzeuge", "GS-2026-0003", "2026-02-12", None, -100, -19, -119, "EUR", None, "Sheet1!A9"],
        ["Spedition Weiß", "445/26", "2026-03-03", "2026-03-17", 1050, 199.5, 1249.5, "EUR", None, "Sheet1!A11"],
    ]
    assert reasons(outcome) == [["Sheet1!A12", "invoice_number", "required"]]
    notes = {one["field"]: one["note"] for one in outcome.report["tables"][0]["mapped"]}
    assert notes["net"] == "decimal mark ',', as in '1.234,50'"


def test_two_header_rows_merged_cells_and_a_hidden_sheet_are_handled(tmp_path: Path) -> None:
    outcome = normalised(INVOICES, "supplier-ledger-jan-feb.xlsx", tmp_path)

    alfa = "Alfa Steel Sp. z o.o."
    assert outcome.sheet() == [
        INVOICE_HEADER.split(","),
        [alfa, "FV/12/01", "2026-01-08", None, 5000, 1150, 6150, "PLN", None, "Jan!A4"],
        [alfa, "FV/19/01", "2026-01-15", None, 250, 57.5, 307.5, "PLN", None, "Jan!A5"],
        [alfa, "FV/31/01", "2026-01-29", None, 80.1, 18.42, 98.52, "PLN", None, "Jan!A6"],
        ["Nordic Paper AB", "70012", "2026-01-20", None, 1000, 250, 1250, "SEK", None, "Jan!A7"],
        ["Nordic Paper AB", "70044", "2026-02-03", None, 400, 100, 500, "SEK", None, "Feb!A4"],
        ["Quick Courier", "QC-5", "2026-02-11", None, 18, 0, 18, "GBP", None, "Feb!A6"],
    ]
    assert reasons(outcome) == [["Feb!A7", "invoice_date", "bad_value"]]
    first, second = outcome.report["tables"]
    assert first["header_rows"] == second["header_rows"] == [2, 3]
    assert [one["header"] for one in first["mapped"]][3:6] == ["Amount / Net", "Amount / VAT", "Amount / Gross"]
    assert second["rows_skipped"] == {"repeated_header": 1}
    assert outcome.of("sheet.skipped") == [outcome.of("sheet.skipped")[0]]
    assert outcome.of("sheet.skipped")[0]["reason"] == "hidden"


def test_an_american_export_is_normalised(tmp_path: Path) -> None:
    outcome = normalised(INVOICES, "vendor-invoices-export.csv", tmp_path)

    assert outcome.sheet() == [
        INVOICE_HEADER.split(","),
        ["Acme Corp", "INV-1001", "2026-01-05", "2026-02-04", None, None, 1234.56, "USD", "PO-7781", "Sheet1!A2"],
        ["Acme Corp", "INV-1002", "2026-01-17", "2026-02-16", None, None, -200, "USD", "PO-7782", "Sheet1!A3"],
        ["Smith, Jones & Partners", "88-2", "2026-03-04", None, None, None, 75, "USD", None, "Sheet1!A4"],
    ]
    assert outcome.sheet("Unmapped")[1:] == [
        ["Sheet1!A2", "Widgets,\nblue"],
        ["Sheet1!A3", "credit"],
        ["Sheet1!A4", 'said "thanks"'],
    ]
    assert reasons(outcome) == [["Sheet1!A5", "gross", "bad_value"], ["Sheet1!A6", "invoice_date", "bad_value"]]
    notes = {one["field"]: one["note"] for one in outcome.report["tables"][0]["mapped"]}
    assert notes["invoice_date"] == "month first, as in '1/17/2026'"


def test_tables_side_by_side_and_below_are_found(tmp_path: Path) -> None:
    outcome = normalised(INVOICES, "open-items-by-region.xlsx", tmp_path)

    assert [[row[0], row[1], row[2], row[6], row[7], row[9]] for row in outcome.sheet()[1:]] == [
        ["Iron Works", "N-1", "2026-02-01", 10.5, "EUR", "Open items!A3"],
        ["Sol SA", "S-1", "2026-02-04", 40, "EUR", "Open items!F3"],
        ["Iron Works", "N-2", "2026-02-02", 20, "EUR", "Open items!A4"],
        ["Sol SA", "S-2", "2026-02-05", 50.25, "EUR", "Open items!F4"],
        ["Fjord AS", "N-3", "2026-02-03", 30, "EUR", "Open items!A5"],
        ["Iron Works", "C-1", "2026-02-10", -5, "EUR", "Open items!A10"],
        ["Sol SA", "C-2", "2026-02-11", -7.5, "EUR", "Open items!A11"],
    ]
    assert [(one["range"], one["rows_written"]) for one in outcome.report["tables"]] == [
        ("A:D", 3),
        ("F:I", 2),
        ("A:E", 2),
    ]
    assert outcome.report["tables"][2]["title"] == "Credit notes"


def test_a_list_grouped_by_department_is_normalised(tmp_path: Path) -> None:
    outcome = normalised(ROSTER, "staff-list-march.xlsx", tmp_path)

    sheet, at = "Staff list", "@harbour.example"
    assert outcome.sheet() == [
        ROSTER_HEADER.split(","),
        ["1001", "Piotr Nowak", "Warehouse", "Forklift driver", "2019-05-01", 40, 36500, f"p.nowak{at}", f"{sheet}!A7"],
        ["1002", "Grace Okafor", "Warehouse", "Shift lead", "2021-11-15", 38.5, 44000, f"g.okafor{at}", f"{sheet}!A8"],
        ["2001", "Åsa Lindqvist", "Office", "Controller", "2017-09-01", 30, 52000, f"a.lindqvist{at}", f"{sheet}!A11"],
    ]
    assert reasons(outcome) == [
        [f"{sheet}!A12", "weekly_hours", "invalid"],
        [f"{sheet}!A13", "start_date", "error_value"],
        [f"{sheet}!A14", "employee_id", "invalid"],
    ]
    (table,) = outcome.report["tables"]
    assert table["rows_skipped"] == {"blank": 1, "note": 1, "section": 2, "total": 3}
    assert {one["field"]: one["unit"] for one in table["mapped"]}["weekly_hours"] == "h"


def test_a_utf_16_export_with_monthly_salaries_is_normalised(tmp_path: Path) -> None:
    outcome = normalised(ROSTER, "personal-export.csv", tmp_path)

    assert outcome.of("input.opened")[0]["encoding"] == "utf-16"
    assert outcome.sheet() == [
        ROSTER_HEADER.split(","),
        ["00017", "Jürgen Weiß", "Einkauf", "Leiter", "2003-07-01", 40, 63000, None, "Sheet1!A2"],
        ["00023", "Ewa Łukasik", "Einkauf", "Sachbearbeiterin", "2015-03-15", 32.5, 37206, None, "Sheet1!A3"],
        ["00031", "João Da Silva", "Lager", None, "2025-12-01", 20, 19200, None, "Sheet1!A4"],
    ]
    assert reasons(outcome) == [["Sheet1!A5", "name", "required"]]
    assert outcome.sheet("Unmapped")[0] == ["Source", "Geburtsdatum"]


def test_the_sample_documents_match_the_script_that_writes_them(tmp_path: Path) -> None:
    make.make(tmp_path)
    kept = {path.name: content(path) for path in (SAMPLES / "documents").iterdir()}
    assert kept == {path.name: content(path) for path in tmp_path.iterdir()}


def content(path: Path) -> object:
    if path.suffix == ".csv":
        return path.read_bytes()
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in load_workbook(path)}


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    document = SAMPLES / "documents" / "invoices-march-2026.xlsx"
    one = run_here(INVOICES, document, tmp_path / "one")
    two = run_here(INVOICES, document, tmp_path / "two")
    for name in ("output.xlsx", "report.json"):
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()
