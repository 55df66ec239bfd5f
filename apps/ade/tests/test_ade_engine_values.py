"""Numbers and dates: parsed in the many notations that people use."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ade_engine import Rules, integer, percent, text
from ade_engine import date as to_date
from ade_engine import decimal as to_decimal
from ade_engine.columns import Column
from ade_engine.dates import guess_day_first, parse_date
from ade_engine.numbers import guess_decimal, parse_number
from ade_engine.values import Value


@pytest.mark.parametrize(
    ("written", "mark", "expected"),
    [
        ("1,234.56", ".", "1234.56"),
        ("1.234,56", ".", "1234.56"),
        ("1.234", ",", "1234"),
        ("1.234", ".", "1.234"),
        ("1,234", ".", "1234"),
        ("1.234.567", ".", "1234567"),
        ("0.125", ",", "0.125"),
        ("12,5", ".", "12.5"),
        ("1'234.50", ".", "1234.50"),
        ("1 234,50", ",", "1234.50"),
        ("1\u00a0234,50 €", ",", "1234.50"),
        ("€ 7", ".", "7"),
        ("EUR 1.000,00", ".", "1000.00"),
        ("($200.00)", ".", "-200.00"),
        ("-$5", ".", "-5"),
        ("12,50-", ",", "-12.50"),
        ("−3", ".", "-3"),
        (".5", ".", "0.5"),
    ],
)
def test_a_number_is_parsed(written: str, mark: str, expected: str) -> None:
    assert parse_number(written, decimal=mark) == Decimal(expected)


@pytest.mark.parametrize(
    "written", ["", "abc", "1.2.3", "12,34,56", "1,23.45,6", "--", "n/a", "12 apples", "٣x", "1e5"]
)
def test_other_text_is_not_parsed_as_a_number(written: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_number(written)


@given(st.text(max_size=20))
def test_any_text_is_parsed_or_refused(written: str) -> None:
    try:
        assert parse_number(written).is_finite()
    except ValueError:
        pass


def test_the_decimal_mark_of_a_column_is_guessed() -> None:
    assert guess_decimal(["1.000", "2.500", "12,75"]) == (",", "12,75")
    assert guess_decimal(["1.000", "2.500"]) == (None, None)
    assert guess_decimal(["1,234,567"]) == (".", "1,234,567")


def test_numbers_are_parsed_with_the_decimal_mark_of_their_column() -> None:
    def read(*samples: Value) -> list[Value]:
        prepared = to_decimal().prepare(Column(0, "", samples=samples), Rules(decimal="."))
        return [prepared.function(sample) for sample in samples]

    assert read("1.000", "12,75") == [Decimal(1000), Decimal("12.75")]
    assert read("1.000", "12.75") == [Decimal("1.000"), Decimal("12.75")]
    assert read(0.1 + 0.2) == [Decimal("0.3")]


@pytest.mark.parametrize(
    ("written", "day_first", "expected"),
    [
        ("2026-03-01", True, date(2026, 3, 1)),
        ("2026-03-01T10:20:30Z", True, date(2026, 3, 1)),
        ("1.3.2026", False, date(2026, 3, 1)),
        ("03/04/2026", True, date(2026, 4, 3)),
        ("03/04/2026", False, date(2026, 3, 4)),
        ("31/01/26", False, date(2026, 1, 31)),
        ("20260301", True, date(2026, 3, 1)),
        ("1 March 2026", True, date(2026, 3, 1)),
        ("Mar 1, 2026", True, date(2026, 3, 1)),
        ("1-Mär-26", True, date(2026, 3, 1)),
        ("3. Dezember 2025", True, date(2025, 12, 3)),
        ("46082", True, date(2026, 3, 1)),
        (46082, True, date(2026, 3, 1)),
        (datetime(2026, 3, 1, 5), True, date(2026, 3, 1)),  # noqa: DTZ001 - a cell has no zone
    ],
)
def test_a_date_is_parsed(written: Value, day_first: bool, expected: date) -> None:
    assert parse_date(written, day_first=day_first) == expected


@pytest.mark.parametrize("written", ["", "soon", "31.02.2026", "2026-13-01", "13/13/2026", "99", True, 5, "00.00.0000"])
def test_other_values_are_not_parsed_as_dates(written: Value) -> None:
    with pytest.raises(ValueError, match="not a d"):
        parse_date(written)


def test_the_order_of_day_and_month_in_a_column_is_guessed() -> None:
    assert guess_day_first(["03/04/2026", "25/04/2026"]) == (True, "25/04/2026")
    assert guess_day_first(["03/04/2026", "04/25/2026"]) == (False, "04/25/2026")
    assert guess_day_first(["03/04/2026"]) == (None, None)
    prepared = to_date().prepare(Column(0, "", samples=("01/02/2026", "01/31/2026")), Rules(day_first=True))
    assert prepared.function("01/02/2026") == date(2026, 1, 2)


def test_text_integer_and_percent_transform_values() -> None:
    assert text("  a \n b ") == "a b"
    assert text(12.0) == "12"
    assert integer()(" 12.0 ") == 12
    assert percent()("19 %") == Decimal("0.19")
    assert percent()(19) == Decimal("0.19")
    assert percent()(0.19) == Decimal("0.19")
    with pytest.raises(ValueError, match="whole"):
        integer()("12.5")
