"""Mapping of columns to fields: the best assignment overall, with the scores that explain it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest
from apps.ade.tests.engine_runs import INVOICES, ROSTER, modules_as_before
from apps.ade.tests.labelled_headers import INVOICE_ROWS, ROSTER_ROWS, examples, labelled
from hypothesis import given
from hypothesis import strategies as st

from ade_engine import Rules, headers, looks_like_numbers
from ade_engine.assignment import assign
from ade_engine.columns import Column
from ade_engine.guard import Guard
from ade_engine.loading import load_rules
from ade_engine.mapping import Mapping, map_columns
from ade_engine.texts import normal, split_unit


def mapped(rules: Rules, *columns: Column) -> Mapping:
    return map_columns(columns, rules, Guard(Path("/nowhere"), seconds=0), "Sheet1", 1)


def column(position: int, title: str, *samples: object) -> Column:
    header, unit = split_unit(title)
    return Column(position, header, "", unit, samples, len(samples))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("folder", "rows"), [(INVOICES, INVOICE_ROWS), (ROSTER, ROSTER_ROWS)], ids=["invoices", "roster"]
)
def test_at_least_95_percent_of_labelled_headers_are_mapped_correctly(
    folder: Path, rows: str, record_property: Callable[[str, object], None]
) -> None:
    with modules_as_before():
        rules = load_rules(folder, Guard(folder, seconds=0), engine="1.0.0", required="1")
    right, wrong = 0, []
    for row in labelled(rows):
        columns = [column(position, header, *examples(header, field)) for position, (header, field) in enumerate(row)]
        fields = {one.column.position: one.field.name for one in mapped(rules, *columns).mapped}
        for position, (header, field) in enumerate(row):
            if (got := fields.get(position, "-")) == field:
                right += 1
            else:
                wrong.append(f"{header}: {got}, not {field}")
    share = right / (right + len(wrong))
    record_property("mapping_accuracy", f"{right} of {right + len(wrong)}")
    assert share >= 0.95, f"{share:.3f}: {wrong}"


@given(
    st.lists(
        st.lists(st.none() | st.integers(1, 9).map(lambda n: n / 4), min_size=3, max_size=3), min_size=1, max_size=4
    )
)
def test_no_other_assignment_has_a_higher_total(scores: list[list[float | None]]) -> None:
    chosen = assign(scores)
    taken = [one for one in chosen if one is not None]
    assert len(set(taken)) == len(taken)
    best = 0.0
    for order in permutations([0, 1, 2, *[None] * len(scores)], len(scores)):
        best = max(best, sum(scores[index][one] or 0 for index, one in enumerate(order) if one is not None))
    assert sum(scores[index][one] or 0 for index, one in enumerate(chosen) if one is not None) == best


def test_the_best_total_wins_over_the_best_single_match() -> None:
    rules = Rules()
    rules.field("amount", detectors=[headers("amount | total")])
    rules.field("total", detectors=[headers("total")])
    mapping = mapped(rules, column(0, "Total"), column(1, "Amount"))
    assert {one.column.letter: one.field.name for one in mapping.mapped} == {"A": "total", "B": "amount"}


def test_the_leftmost_column_wins_a_tie_and_a_note_says_so() -> None:
    rules = Rules()
    rules.field("amount", detectors=[headers("amount"), looks_like_numbers()])
    mapping = mapped(rules, column(2, "Amount", 1, 2), column(4, "Amount", 3, 4))
    (one,) = mapping.mapped
    assert one.column.letter == "C"
    assert one.note == "column E has the same score; the leftmost free column is chosen"
    assert one.scores == (("headers", 1.0), ("looks_like_numbers", 0.2))
    assert [other.best and other.best.field for other in mapping.unmapped] == ["amount"]


def test_a_score_below_the_threshold_maps_no_column() -> None:
    rules = Rules()
    rules.field("amount", threshold=0.9, detectors=[headers("amount due")])
    mapping = mapped(rules, column(0, "Amount", 1))
    assert mapping.mapped == ()
    assert [field.name for field in mapping.missing] == ["amount"]


@pytest.mark.parametrize(
    ("written", "normal_form"),
    [
        ("Inv.-No.", "invoice number"),
        ("InvoiceNo", "invoice number"),
        ("RECHNUNGSNR", "rechnungsnummer"),
        ("N° facture", "number facture"),
    ],
)
def test_different_spellings_have_the_same_normal_form(written: str, normal_form: str) -> None:
    assert normal(written) == normal_form


@pytest.mark.parametrize(
    ("header", "parts"),
    [
        ("Amount (EUR)", ("Amount", "EUR")),
        ("Betrag in €", ("Betrag", "EUR")),
        ("Weight [kg]", ("Weight", "kg")),
        ("Net EUR", ("Net", "EUR")),
        ("Date (invoice)", ("Date (invoice)", None)),
        ("%", ("%", None)),
    ],
)
def test_the_unit_is_split_off_a_header(header: str, parts: tuple[str, str | None]) -> None:
    assert split_unit(header) == parts
