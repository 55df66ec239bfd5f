"""Dates: find German and English dates, in figures or with the name of the month, and name them (due_date …)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from apps.records.extractors.fields import FoundField, Hints, any_of, first_match, line_after, line_before

MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january januar jan jänner",
            "february februar feb feber",
            "march märz maerz mar mär mrz",
            "april apr",
            "may mai",
            "june juni jun",
            "july juli jul",
            "august aug",
            "september sep sept",
            "october oktober oct okt",
            "november nov",
            "december dezember dec dez",
        ),
        start=1,
    )
    for name in names.split()
}
_MONTH = "(?P<month>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun|tues|wednes|thurs|satur)(?:day)?,? )?"
_DAY, _YEAR = r"(?P<day>\d{1,2})", r"(?P<year>\d{4}|\d{2})(?!\d|\.\d)"
_FREE = r"(?<![\d.,/\-])"

PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        _FREE + r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?![\d-])",
        _FREE + _DAY + r"\. ?(?P<month>\d{1,2})\. ?" + _YEAR,
        _FREE + r"(?P<first>\d{1,2})(?P<mark>[/-])(?P<second>\d{1,2})(?P=mark)" + _YEAR + r"(?![/-])",
        _FREE + _WEEKDAY + _DAY + r"(?:st|nd|rd|th|\.)? ?(?:of )?" + _MONTH + r",? (?P<year>\d{4})\b",
        r"\b" + _WEEKDAY + _MONTH + r" " + _DAY + r"(?:st|nd|rd|th)?,? (?P<year>\d{4})\b",
    )
)
RANGE_START = re.compile(
    _FREE + _DAY + r"\.(?P<month>\d{1,2})\. ?(?:bis(?: zum)?|[-–—]) ?(?=\d{1,2}\. ?\d{1,2}\. ?(?P<year>\d{4}))"
)
"""The first date of a range such as '12.03. bis 15.03.2024'; it has the year of the second date."""

NAMES = (
    ("birth_date", any_of(r"\bgeb(?:\.|oren|urtsdatum)", r"\bdate of birth", r"\bborn\b", r"\bd\.?o\.?b\b")),
    ("invoice_date", any_of(r"rechnungsdatum", r"invoice date", r"date of invoice", r"ausstellungsdatum")),
    (
        "incident_date",
        any_of(r"schaden(?:tag|datum)", r"unfall(?:tag|datum)", r"date of (?:the )?(?:loss|accident|incident)"),
    ),
    ("service_date", any_of(r"leistungs(?:zeitraum|datum)", r"lieferdatum", r"date of service", r"service period")),
    (
        "due_date",
        any_of(r"\bdue\b", r"fällig", r"zahlbar", r"pay(?:able|ment)? (?:is due )?by", r"frist bis", r"zahlungsziel"),
    ),
    (
        "end_date",
        any_of(
            r"\bdischarged?", r"entlass(?:ung|en am)", r"\buntil\s+$", r"bis (?:zum )?$", r"\bends? on\b", r"endet am"
        ),
    ),
    # The day on which a contract was signed is not its start date.
    ("date", any_of(r"\b(?:made|entered into|signed|executed|dated)(?: on| as of)?\s+$", r"\bunterzeichnet am\s+$")),
    (
        "start_date",
        any_of(
            r"\badmi(?:ssion|tted)",
            r"aufnahme(?:datum| am)",
            r"beginnt am",
            r"\bbegin(?:s|ning) on\b",
            r"commenc",
            r"effective",
            r"\bas of\s+$",
            r"\bab (?:dem )?$",
            r"\bstart(?:s|ing)? (?:on|date)",
        ),
    ),
)
_PAYS = any_of(r"überweis", r"zahlen sie", r"begleichen", r"\bpay\b", r"\bremit")
_RANGE = re.compile(r"\s*(?:[-–—]|bis(?: zum)?|to|until)\s*", re.IGNORECASE)
_FOLLOWS = {"start_date": "end_date", "service_date": "service_date"}
_WHEN = any_of(r"\b(?:morning|afternoon|evening|night) of\s+$", r"\b(?:morgen|mittag|nachmittag|abend) des\s+$")
_MONEY_AT_END = re.compile(r"\d[.,]\d{2}\s*(?:€|EUR|CHF|\$|£)?\s*$")
EARLIEST, LATEST = 1850, 2150


def find(text: str, hints: Hints) -> Iterator[FoundField]:
    """Yield the dates of a page, in order."""
    previous: FoundField | None = None
    for start, end, day, confidence in sorted(_dates(text, hints.day_first)):
        if previous is not None and start < previous.end:
            continue
        name = _name(text, start, end, previous, hints)
        previous = FoundField(
            kind="date", name=name, value=day, text=text[start:end], start=start, end=end, confidence=confidence
        )
        yield previous


def day_first(pages: Sequence[str]) -> bool | None:
    """Return whether 03/04 means 3 April, judged by other dates of the document, then by its currency and words.

    Return None if nothing in the document decides it.
    """
    day_count, month_count = 0, 0
    for text in pages:
        for match in PATTERNS[2].finditer(text):
            day_count += int(match["first"]) > 12 >= int(match["second"])
            month_count += int(match["second"]) > 12 >= int(match["first"])
    if day_count != month_count:
        return day_count > month_count
    whole = "\n".join(pages)[:200_000]
    if re.search(r"[£€]|\bEUR\b|\bGBP\b|\bNHS\b|\bVAT\b|\bund\b", whole):
        return True
    if re.search(r"\$\s?\d|\bUSD\b|\b[A-Z]{2} \d{5}\b", whole):
        return False
    return None


def _dates(text: str, first_is_day: bool | None) -> Iterator[tuple[int, int, str, float]]:
    for match in RANGE_START.finditer(text):
        if day := _iso(match["year"], match["month"], match["day"]):
            yield match.start(), match.end("month") + 1, day, 0.85
    for pattern in PATTERNS:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            confidence = 0.98 if len(parts["year"]) == 4 else 0.8
            if "first" in parts:
                first, second = int(parts["first"]), int(parts["second"])
                if first <= 12 and second <= 12 and first != second:
                    confidence = 0.85 if first_is_day is not None else 0.5
                as_day = first > 12 or (second <= 12 and first_is_day is not False)
                parts["day"], parts["month"] = (first, second) if as_day else (second, first)
            day = _iso(parts["year"], parts["month"], parts["day"], birth=_is_birth(text, match.start()))
            if day is not None:
                yield match.start(), match.end(), day, confidence


def _iso(year: str, month: str | int, day: str | int, *, birth: bool = False) -> str | None:
    """Return the ISO date, or None if there is no such day."""
    number = MONTHS.get(str(month).lower().rstrip(".")) or int(month)
    full = int(year)
    if len(year) == 2:
        # A two-digit year of birth is in the past; any other is near the present.
        full += 1900 if full > (30 if birth else 69) else 2000
    try:
        found = date(full, number, int(day))
    except ValueError:
        return None
    return found.isoformat() if EARLIEST <= found.year <= LATEST else None


def _is_birth(text: str, at: int) -> bool:
    return NAMES[0][1].search(line_before(text, at, most=30)) is not None


def _name(text: str, start: int, end: int, previous: FoundField | None, hints: Hints) -> str:
    """Name a date by the words before it; the second date of a range is named after the first."""
    before = line_before(text, start, most=90)
    if hints.kind == "invoice" and not before.strip() and _MONEY_AT_END.search(line_after(text, end, most=160)):
        return "service_date"  # the first column of a table
    if not before.strip() and text[start - 2 : start] != "\n\n":
        # The line may have been broken in the middle of a sentence: look at the end of the line above.
        before = line_before(text, max(start - 1 - len(before), 0), most=40).rstrip() + " "
        before = before if re.search(r"[a-zäöüß] $", before) else ""
    if previous is not None and start >= previous.end and _RANGE.fullmatch(text[previous.end : start]):
        return _FOLLOWS.get(previous.name, "date")
    # Only the words since the previous date, sentence or column describe this date.
    if previous is not None and previous.end > start - len(before):
        before = text[previous.end : start]
    before = re.split(r"\s{3,}|\. (?=[A-ZÄÖÜ])", f"{before.rstrip()} ")[-1]
    name = first_match(NAMES, before)
    if name == "end_date" and _PAYS.search(line_before(text, start, most=120)):
        return "due_date"
    if name is not None:
        return name
    if hints.kind == "claim" and _WHEN.search(before):
        return "incident_date"
    if re.search(r"\bvom\s+$", before) and re.match(r"\s*bis\b", text[end : end + 8]):
        return "start_date"
    if hints.kind == "invoice" and re.search(r"^\s*(?:date|datum)\s*:\s*$", before, re.IGNORECASE):
        return "invoice_date"
    return "date"
