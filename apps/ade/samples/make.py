"""Writes the sample documents, which are as messy as real ones: `python -m apps.ade.samples.make [FOLDER]`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from openpyxl import Workbook
from openpyxl.styles import Font

MEYER = "Meyer & Söhne GmbH"
FORMULA = '=HYPERLINK("http://example.test","Click")'
DOCUMENTS = Path(__file__).parent / "documents"


def march_invoices(path: Path) -> None:
    """A title over all columns, blank rows, units in headers, a total, footnotes, and texts that look like formulas."""
    book, sheet = one_sheet("March 2026")
    sheet["A1"] = "Incoming invoices – March 2026"
    sheet["A1"].font = Font(bold=True, size=16)
    sheet.merge_cells("A1:H1")
    sheet["A2"] = "Prepared by: accounts payable, 2026-04-02"
    rows: list[list[Any]] = [
        ["Vendor", "Inv. No.", "Invoice Date", "Due", "Net (EUR)", "VAT rate", "VAT (EUR)", "Total (EUR)", "Remarks"],
        ["Baltic Timber OÜ", "BT-10233", date(2026, 3, 2), date(2026, 4, 1), 1250, 0.22, 275, 1525, None],
        [MEYER, "2026/0417", date(2026, 3, 5), date(2026, 3, 19), 980.5, 0.19, 186.3, 1166.8, "urgent"],
        ["Total Energies", "TE-99812", date(2026, 3, 9), date(2026, 4, 8), 412.19, 0.2, 82.44, 494.63, "gas"],
        [FORMULA, "X-1001", date(2026, 3, 11), None, 100, 0.2, 20, 120, "@SUM(A1)"],
        [None] * 9,
        [MEYER, "2026/0502", date(2026, 3, 27), date(2026, 4, 10), 60, 0.19, 11.4, 71.4, "+49 30 1234"],
        [MEYER, "2026/0417", date(2026, 3, 5), date(2026, 3, 19), 980.5, 0.19, 186.3, 1166.8, "sent twice"],
        ["Papeterie Lille", "F-77", date(2026, 3, 30), date(2026, 4, 29), 45, 0.2, 9, 64, "does not add up"],
        ["TOTAL", None, None, None, 3828.19, None, 770.44, 4608.63, None],
        [None] * 9,
        ["* amounts in euro; credit notes are listed separately in another file"],
        ["Source: ERP export"],
    ]  # fmt: skip
    write_rows(sheet, rows, top=4)
    for cell in ("A8", "I8"):
        sheet[cell].data_type = "s"
    book.save(path)


def german_export(path: Path) -> None:
    """A German export: semicolons, decimal commas, Windows encoding, lines above the table and a total below."""
    lines = [
        "Kreditorenbuchhaltung;;;;;;",
        "Mandant: 0815 Holzbau Grün KG;;;;;;",
        "Zeitraum: 01.01.2026 - 31.03.2026;;;;;;",
        ";;;;;;",
        "Lieferant;Rechnungsnr.;Rechnungsdatum;Fällig am;Nettobetrag in €;MwSt.;Bruttobetrag in €",
        "Müller Werkzeuge;RE-2026-0012;07.01.2026;21.01.2026;1.234,50;234,56;1.469,06",
        '"Schrauben; Dübel & Co.";88121;15.01.2026;;89,90;17,08;106,98',
        "Stadtwerke Nürnberg;V-4711-01;31.01.2026;14.02.2026;2.000;380;2.380",
        "Müller Werkzeuge;GS-2026-0003;12.02.2026;;-100,00;-19,00;-119,00",
        ";;;;;;",
        "Spedition Weiß;445/26;03.03.2026;17.03.2026;1.050,00;199,50;1.249,50",
        "Bürobedarf Ost;;09.03.2026;;12,00;2,28;14,28",
        "Summe;;;;4.286,40;814,42;5.100,82",
    ]
    path.write_bytes("\r\n".join([*lines, ""]).encode("cp1252"))


def two_months(path: Path) -> None:
    """A header of two rows, a supplier merged over its invoices, a header repeated inside the table, a hidden sheet."""
    book = Workbook()
    months: dict[str, list[list[Any]]] = {
        "Jan": [
            ["Alfa Steel Sp. z o.o.", "FV/12/01", "2026-01-08", 5000, 1150, 6150, "PLN"],
            [None, "FV/19/01", "2026-01-15", 250, 57.5, 307.5, "PLN"],
            [None, "FV/31/01", "2026-01-29", 80.1, 18.42, 98.52, "PLN"],
            ["Nordic Paper AB", "70012", "2026-01-20", 1000, 250, 1250, "SEK"],
        ],
        "Feb": [
            ["Nordic Paper AB", "70044", "2026-02-03", 400, 100, 500, "SEK"],
            ["Supplier", "Invoice No", "Date", "Net", "VAT", "Gross", "Currency"],
            ["Quick Courier", "QC-5", "2026-02-11", 18, 0, 18, "GBP"],
            ["Quick Courier", "QC-9", "31 Feb 2026", 20, 0, 20, "GBP"],
        ],
    }
    for index, (name, rows) in enumerate(months.items()):
        sheet = book.active if index == 0 else book.create_sheet()
        sheet.title = name
        write_rows(
            sheet,
            [
                ["Supplier", "Invoice No", "Date", "Amount", None, None, "Currency"],
                [None, None, None, "Net", "VAT", "Gross", None],
            ],
            top=2,
        )
        sheet.merge_cells("D2:F2")
        for column in "ABCG":
            sheet.merge_cells(f"{column}2:{column}3")
        write_rows(sheet, rows, top=4)
    book["Jan"].merge_cells("A4:A6")
    hidden = book.create_sheet("Codes")
    write_rows(hidden, [["Supplier", "Invoice No", "Date", "Gross"], ["Old Test", "0", date(2020, 1, 1), 1]], top=1)
    hidden.sheet_state = "hidden"
    book.save(path)


def american_export(path: Path) -> None:
    """A byte order mark, dates with the month first, dollars, credits in brackets, and line breaks inside quotes."""
    lines = [
        "Vendor Name,Invoice #,Invoice Date,Due Date,PO Number,Amount,Memo",
        'Acme Corp,INV-1001,1/5/2026,2/4/2026,PO-7781,"$1,234.56","Widgets,\nblue"',
        'Acme Corp,INV-1002,1/17/2026,2/16/2026,PO-7782,"($200.00)",credit',
        '"Smith, Jones & Partners",88-2,03/04/2026,,,$75,"said ""thanks"""',
        "Globex LLC,G-3,12/31/2025,1/30/2026,PO-1,n/a,amount to follow",
        "Initech,I-42,2/30/2026,,PO-9,$10.00,no such day",
    ]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, ""]).encode())


def open_items(path: Path) -> None:
    """Two tables side by side, and a third one below with other columns, all on one sheet."""
    book, sheet = one_sheet("Open items")
    write_rows(sheet, [["North region", None, None, None, None, "South region"]], top=1)
    header = ["Supplier", "Invoice", "Date", "Amount (EUR)"]
    write_rows(sheet, [[*header, None, *header]], top=2)
    north = [
        ["Iron Works", "N-1", date(2026, 2, 1), 10.5],
        ["Iron Works", "N-2", date(2026, 2, 2), 20],
        ["Fjord AS", "N-3", date(2026, 2, 3), 30],
    ]
    south = [["Sol SA", "S-1", date(2026, 2, 4), 40], ["Sol SA", "S-2", date(2026, 2, 5), 50.25]]
    for index in range(3):
        write_rows(sheet, [[*north[index], None, *(south[index] if index < len(south) else [])]], top=3 + index)
    write_rows(sheet, [["Credit notes"]], top=8)
    write_rows(
        sheet,
        [
            ["Gross", "Currency", "Inv no", "Issued", "Vendor"],
            [-5, "EUR", "C-1", "2026-02-10", "Iron Works"],
            [-7.5, "EUR", "C-2", "2026-02-11", "Sol SA"],
        ],
        top=9,
    )
    book.save(path)


def staff_by_department(path: Path) -> None:
    """People grouped under rows that name their department, with subtotals, and a row of units below the header."""
    book, sheet = one_sheet("Staff list")
    write_rows(sheet, [["HARBOUR LOGISTICS LTD"], ["Staff list as of 1 March 2026 – confidential"]], top=1)
    sheet.merge_cells("A1:G1")
    rows: list[list[Any]] = [
        ["Staff No.", "Name of employee", "Position", "Hired on", "Hours", "Salary", "E-Mail"],
        [None, None, None, "(dd/mm/yyyy)", "(h)", "(EUR)", None],
        ["Department: Warehouse"],
        [1001, "NOWAK, Piotr", "Forklift driver", date(2019, 5, 1), 40, 36500, "P.Nowak@harbour.example"],
        [1002, "Okafor, Grace", "Shift lead", date(2021, 11, 15), 38.5, 44000, "g.okafor@harbour.example"],
        ["Subtotal", None, None, None, 78.5, 80500],
        ["Department: Office"],
        [2001, "Lindqvist, Åsa", "Controller", "01/09/2017", 30, "52.000,00", "a.lindqvist@harbour.example"],
        [2002, "Brandt, Uwe", "Dispatcher", "15/02/2024", 140, 41000, "u.brandt@harbour.example"],
        [2003, "Rossi, Elena", "Assistant", "#REF!", 20, 24000, "e.rossi@harbour.example"],
        [2001, "Lindqvist, Åsa", "Controller", "01/09/2017", 30, 52000, "a.lindqvist@harbour.example"],
        ["Subtotal", None, None, None, 220, 169000],
        ["Grand total", None, None, None, 298.5, 249500],
        [None],
        ["* hours per week as in the contract"],
    ]
    write_rows(sheet, rows, top=4)
    book.save(path)


def personnel_export(path: Path) -> None:
    """An Excel export as "Unicode text": UTF-16 with tabs; first and last names in two columns, monthly salaries."""
    lines = [
        "Personalnummer\tNachname\tVorname\tAbteilung\tStelle\tGeburtsdatum\tEintrittsdatum"
        "\tWochenstunden\tMonatsgehalt (EUR)",
        "00017\tWeiß\tJürgen\tEinkauf\tLeiter\t03.04.1971\t01.07.2003\t40\t5.250,00",
        "00023\tŁukasik\tEwa\tEinkauf\tSachbearbeiterin\t17.09.1988\t15.03.2015\t32,5\t3.100,50",
        "00031\tDa Silva\tJoão\tLager\t\t\t01.12.2025\t20\t1.600",
        "00044\t\t\tLager\tAushilfe\t\t01.01.2026\t10\t520",
    ]
    path.write_bytes("\r\n".join([*lines, ""]).encode("utf-16"))


MAKERS: dict[str, Callable[[Path], None]] = {
    "invoices-march-2026.xlsx": march_invoices,
    "rechnungen-quartal-1.csv": german_export,
    "supplier-ledger-jan-feb.xlsx": two_months,
    "vendor-invoices-export.csv": american_export,
    "open-items-by-region.xlsx": open_items,
    "staff-list-march.xlsx": staff_by_department,
    "personal-export.csv": personnel_export,
}


def make(folder: Path) -> None:
    """Write all the documents into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, maker in MAKERS.items():
        maker(folder / name)


def one_sheet(title: str) -> tuple[Any, Any]:
    book = Workbook()
    book.active.title = title
    return book, book.active


def write_rows(sheet: Any, rows: list[list[Any]], *, top: int) -> None:
    for number, row in enumerate(rows, start=top):
        for position, value in enumerate(row, start=1):
            if value is not None:
                sheet.cell(number, position, value)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS)
