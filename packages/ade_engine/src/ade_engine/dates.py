"""Dates: parses 2026-03-01, 1.3.2026, 03/01/26, 1 March 2026 and the serial numbers of Excel."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta

from ade_engine.texts import normal
from ade_engine.values import Value

TIME = r"(?:[T\s,]+\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:[ap]\.?m\.?|Z|[+-]\d{2}:?\d{2})?)?"
YEAR_FIRST = re.compile(rf"(\d{{4}})[-/.](\d{{1,2}})[-/.](\d{{1,2}}){TIME}", re.IGNORECASE)
YEAR_LAST = re.compile(rf"(\d{{1,2}})([-/.])(\d{{1,2}})\2(\d{{4}}|\d{{2}}){TIME}", re.IGNORECASE)
COMPACT = re.compile(r"(19|20)(\d{2})(\d{2})(\d{2})")
DAY_NAME_YEAR = re.compile(r"(\d{1,2})(?:st|nd|rd|th|er|\.)?[-\s/]+([^\W\d_]{3,12})\.?,?[-\s/]+'?(\d{4}|\d{2})")
NAME_DAY_YEAR = re.compile(r"([^\W\d_]{3,12})\.?[-\s/]+(\d{1,2})(?:st|nd|rd|th)?,?[-\s/]+(\d{4}|\d{2})")
MONTH_NAMES = (
    "january januar janvier enero gennaio jan",
    "february februar fevrier febrero febbraio feb fev fevr",
    "march marz maerz mars marzo mar mrz",
    "april avril abril aprile apr avr abr",
    "may mai mayo maggio mag",
    "june juni juin junio giugno jun giu",
    "july juli juillet julio luglio jul juil lug",
    "august aout agosto aug aou ago",
    "september septembre septiembre settembre sep sept set",
    "october oktober octobre octubre ottobre oct okt ott",
    "november novembre noviembre nov",
    "december dezember decembre diciembre dicembre dec dez dic",
)
MONTHS = {name: number for number, names in enumerate(MONTH_NAMES, start=1) for name in names.split()}
FIRST_SERIAL, LAST_SERIAL = 20_000, 80_000


def parse_date(value: Value, *, day_first: bool = True) -> date:
    """Return the date in a value, or raise ValueError. `day_first` decides only ambiguous texts, like 03/04/2026."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and FIRST_SERIAL <= value <= LAST_SERIAL:
        return date(1899, 12, 30) + timedelta(days=int(value))
    if isinstance(value, str):
        year_month_day = parts(value.strip(), day_first=day_first)
        if year_month_day is not None:
            try:
                return date(*year_month_day)
            except ValueError:
                raise ValueError(f"{value[:60]!r} is not a day in the calendar") from None
    raise ValueError(f"{str(value)[:60]!r} is not a date")


def parts(text: str, *, day_first: bool) -> tuple[int, int, int] | None:
    if match := YEAR_FIRST.fullmatch(text):
        return int(match[1]), int(match[2]), int(match[3])
    if match := YEAR_LAST.fullmatch(text):
        first, second, year = int(match[1]), int(match[3]), full_year(match[4])
        day, month = (first, second) if day_first or match[2] == "." else (second, first)
        # A number above 12 can't be a month, so it is the day, even in a column with the other order.
        return (year, month, day) if month <= 12 else (year, day, month)
    if match := COMPACT.fullmatch(text):
        return int(match[1] + match[2]), int(match[3]), int(match[4])
    if (match := DAY_NAME_YEAR.fullmatch(text)) and (named := month_of(match[2])):
        return full_year(match[3]), named, int(match[1])
    if (match := NAME_DAY_YEAR.fullmatch(text)) and (named := month_of(match[1])):
        return full_year(match[3]), named, int(match[2])
    if text.isdigit() and len(text) == 5 and FIRST_SERIAL <= int(text) <= LAST_SERIAL:
        counted = date(1899, 12, 30) + timedelta(days=int(text))
        return counted.year, counted.month, counted.day
    return None


def month_of(name: str) -> int | None:
    return MONTHS.get(normal(name))


def full_year(digits: str) -> int:
    year = int(digits)
    return year if len(digits) == 4 else year + (2000 if year < 70 else 1900)


def is_date(value: Value) -> bool:
    """Return whether a value is a date, or a text that can be parsed as one; a plain number is not."""
    if isinstance(value, date):
        return True
    if not isinstance(value, str) or not 6 <= len(value) <= 40 or value.isdigit():
        return False
    try:
        parse_date(value)
    except ValueError:
        return False
    return True


def guess_day_first(samples: Iterable[Value]) -> tuple[bool | None, str | None]:
    """Return whether a column's dates begin with the day, and a value that proves it; None if no value proves it."""
    for sample in samples:
        if isinstance(sample, str) and (match := YEAR_LAST.fullmatch(sample.strip())):
            first, mark, second = int(match[1]), match[2], int(match[3])
            if mark == "." or (first > 12 >= second):
                return True, sample.strip()
            if second > 12 >= first:
                return False, sample.strip()
    return None, None
