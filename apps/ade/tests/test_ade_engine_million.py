"""A million rows: all are normalised, and memory use stays limited."""

from __future__ import annotations

from pathlib import Path

import pytest
from apps.ade.tests.engine_runs import INVOICES, run_process

from ade_engine.limits import Limits
from ade_engine.workbook_writer import WorkbookWriter

ROWS = 1_000_000
HEADER = ("Supplier", "Invoice No", "Invoice Date", "Net (EUR)", "VAT (EUR)", "Remarks")
MAX_MEMORY = 700 * 1024 * 1024


def invoice(index: int) -> tuple[str, str, str, float, float, str]:
    net = 100 + index % 977
    return (
        f"Supplier {index % 5000} & Co",
        f"INV-{index:07d}",
        f"2026-{1 + index % 12:02d}-{1 + index % 28:02d}",
        net,
        net / 4,
        "ok",
    )


def workbook(folder: Path) -> Path:
    with WorkbookWriter(folder, ["Big"], Limits()) as written:
        written.sheets["Big"].header(HEADER)
        for index in range(ROWS):
            written.sheets["Big"].add(invoice(index))
        written.save(folder / "big.xlsx")
    return folder / "big.xlsx"


def delimited(folder: Path) -> Path:
    with (folder / "big.csv").open("w") as file:
        file.write(",".join(HEADER) + "\n")
        file.writelines(",".join(map(str, invoice(index))) + "\n" for index in range(ROWS))
    return folder / "big.csv"


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("make", [delimited, workbook], ids=["csv", "xlsx"])
def test_a_million_rows_are_normalised_in_limited_memory(tmp_path: Path, make: object) -> None:
    assert callable(make)
    status, events, errors = run_process(INVOICES, make(tmp_path), tmp_path / "o", timeout=2900)
    assert (status, errors) == (0, "")
    finished = events[-1]
    assert (finished["rows_written"], finished["rows_rejected"]) == (ROWS, 0)
    assert finished["peak_memory_bytes"] < MAX_MEMORY
    shares = [one["share"] for one in events if one["event"] == "progress"]
    assert len(shares) == ROWS // 5000
    assert shares == sorted(shares)
