"""Tables: found among titles, notes and other tables, without a failure on any grid."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from apps.ade.tests.engine_runs import configuration, csv, run_here
from hypothesis import given, settings
from hypothesis import strategies as st

from ade_engine import Rules, headers
from ade_engine.mapping import recogniser
from ade_engine.tables import Finder, Table
from ade_engine.values import Line

RULES = Rules()
for name in ("name", "age", "city"):
    RULES.field(name, detectors=[headers(name)])
RECOGNISE = recogniser(RULES)


def find_tables(*rows: Sequence[Any]) -> list[tuple[Table, list[int]]]:
    """Return the tables of a grid, with the numbers of their data rows."""
    lines = [
        Line(number, tuple(row)) for number, row in enumerate(rows, start=1) if any(one is not None for one in row)
    ]
    finder = Finder("S", iter(lines), RECOGNISE)
    result: list[tuple[Table, list[int]]] = []
    for tables in finder.tables():
        data: dict[int, list[int]] = {table.number: [] for table in tables}
        for table, line in finder.rows(tables):
            data[table.number].append(line.number)
        result += [(table, data[table.number]) for table in tables]
    return result


HEADER = ("Name", "Age", "City")
ANNA, BEN, CIM = ("Anna", 30, "Rome"), ("Ben", 41, "Oslo"), ("Cim", 22, "Kyiv")


def test_text_above_and_below_a_table_is_not_data() -> None:
    ((table, rows),) = find_tables(
        ("Our people",), ("Printed", date(2026, 1, 1)), (), HEADER, ANNA, (), BEN, ("* not all of them",)
    )
    assert (table.header_rows, rows) == ((4, 4), [5, 7])
    assert table.title == "Our people / Printed 2026-01-01"
    assert table.skipped == {"blank": 1, "note": 1}


def test_tables_below_each_other_are_found() -> None:
    tables = find_tables(HEADER, ANNA, (), ("Others",), ("City", "Name", "Age"), ("Oslo", "Ben", 41), (), HEADER, CIM)
    assert [rows for _, rows in tables] == [[2], [6], [9]]
    assert [label.header for label in tables[1][0].labels] == ["City", "Name", "Age"]


def test_a_total_is_skipped_but_not_a_name_that_starts_like_one() -> None:
    ((table, rows),) = find_tables(HEADER, ANNA, ("Total", 30), ("Total Recall", 33, "Mars"), ("Sum", 63))
    assert rows == [2, 4]
    assert table.skipped["total"] == 2


def test_a_row_with_one_text_starts_a_section() -> None:
    ((table, rows),) = find_tables(HEADER, ("North",), ANNA, ("South",), BEN)
    assert rows == [3, 5]
    assert table.section == "South"


def test_a_group_above_the_headers_is_part_of_the_header() -> None:
    ((table, rows),) = find_tables(
        ("Name", "Home", None), (None, "City", "Street"), ("Anna", "Rome", "Via 1"), ("Ben", "Oslo", "Gata 2")
    )
    assert table.header_rows == (1, 2)
    assert [(label.group, label.header) for label in table.labels] == [
        ("", "Name"),
        ("Home", "City"),
        ("Home", "Street"),
    ]
    assert rows == [3, 4]


def test_a_table_without_a_header_is_found() -> None:
    ((table, rows),) = find_tables((1, "a", 2.5), (2, "b", 3.5), (3, "c", 4.5))
    assert table.header_rows is None
    assert rows == [1, 2, 3]


def test_the_first_row_of_texts_is_the_header() -> None:
    ((table, _),) = find_tables(HEADER, ANNA, BEN)
    assert table.header_rows == (1, 1)


CELLS = (
    st.none()
    | st.integers(-5, 5)
    | st.sampled_from(["Name", "Age", "City", "Total", "x", "12,5", "1.2.2026", "(EUR)", "*"])
    | st.text(max_size=3)
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(CELLS, max_size=6), max_size=25))
def test_any_grid_is_read_without_a_failure(grid: list[list[Any]]) -> None:
    tables = find_tables(*grid)
    data = [number for _, rows in tables for number in rows]
    assert all(1 <= number <= len(grid) for number in data)
    for table, rows in tables:
        assert rows == sorted(rows)
        assert table.read == len(rows)
        assert table.columns
        assert table.header_rows is None or not rows or table.header_rows[1] < rows[0]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252"])
def test_delimiters_and_encodings_are_recognised(tmp_path: Path, delimiter: str, encoding: str) -> None:
    text = "\r\n".join(delimiter.join(row) for row in [("Name", "Age"), ("Zoë", "30"), ('"Ben, the; 2|nd\t"', "41")])
    document = tmp_path / "x"
    document.write_bytes(text.encode(encoding))
    outcome = run_here(configuration(tmp_path / "c"), document, tmp_path / "o")
    assert [row[:2] for row in outcome.sheet()] == [
        ["Name", "Age"],
        ["Zoë", 30],
        ["Ben, the; 2|nd", 41],
    ]


def test_a_sep_line_old_mac_line_ends_and_single_quotes_are_read(tmp_path: Path) -> None:
    folder = configuration(tmp_path / "c")
    for index, text in enumerate(
        ("sep=;\r\nName;Age\r\nA;1\r\n", "Name,Age\rA,1\r", "'Name','Age'\n'A','1'\n'B','2'\n")
    ):
        outcome = run_here(folder, csv(tmp_path, text), tmp_path / f"o{index}")
        assert [row[:2] for row in outcome.sheet()][:2] == [["Name", "Age"], ["A", 1]]


def test_the_configuration_can_set_encoding_and_delimiter(tmp_path: Path) -> None:
    manifest = 'name = "t"\nengine = "1"\n[reading]\nencoding = "cp1250"\ndelimiter = ":"\n'
    document = tmp_path / "x"
    document.write_bytes("Name:Age\nŁódź:3\n".encode("cp1250"))
    outcome = run_here(configuration(tmp_path / "c", manifest=manifest), document, tmp_path / "o")
    assert outcome.sheet()[1][:2] == ["Łódź", 3]
