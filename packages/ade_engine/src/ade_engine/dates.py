"""Dates as people write them: 2026-03-01, 1.3.2026, 03/01/26, 1 March 2026, and the number that Excel keeps."""

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
    """The day in a value, or ValueError. `day_first` decides only what can be read both ways, like 03/04/2026."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and FIRST_SERIAL <= value <= LAST_SERIAL:
        return date(1899, 12, 30) + timedelta(days=int(value))
    if isinstance(value, str):
        found = parts(value.strip(), day_first=day_first)
        if found is not None:
            try:
                return date(*found)
            except ValueError:
                raise ValueError(f"{value[:60]!r} is not a day of the calendar") from None
    raise ValueError(f"{str(value)[:60]!r} is not a date")


def parts(text: str, *, day_first: bool) -> tuple[int, int, int] | None:
    if found := YEAR_FIRST.fullmatch(text):
        return int(found[1]), int(found[2]), int(found[3])
    if found := YEAR_LAST.fullmatch(text):
        first, second, year = int(found[1]), int(found[3]), full_year(found[4])
        day, month = (first, second) if day_first or found[2] == "." else (second, first)
        # What can't be a month is a day, whatever the column's custom is.
        return (year, month, day) if month <= 12 else (year, day, month)
    if found := COMPACT.fullmatch(text):
        return int(found[1] + found[2]), int(found[3]), int(found[4])
    if (found := DAY_NAME_YEAR.fullmatch(text)) and (named := month_of(found[2])):
        return full_year(found[3]), named, int(found[1])
    if (found := NAME_DAY_YEAR.fullmatch(text)) and (named := month_of(found[1])):
        return full_year(found[3]), named, int(found[2])
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
    """A date, or a text that can be read as one; a bare number is none."""
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
    """Whether the day comes first in a column, and the value that shows it; None when nothing does."""
    for sample in samples:
        if isinstance(sample, str) and (found := YEAR_LAST.fullmatch(sample.strip())):
            first, mark, second = int(found[1]), found[2], int(found[3])
            if mark == "." or (first > 12 >= second):
                return True, sample.strip()
            if second > 12 >= first:
                return False, sample.strip()
    return None, None
