"""Dates: in figures or with the month's name, German and English, each as an ISO date with what it is the date of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date

from apps.records.extractors.fields import FoundField, Hints, first_that_fits, line_after, line_before, words

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
BEGUN = re.compile(
    _FREE + _DAY + r"\.(?P<month>\d{1,2})\. ?(?:bis(?: zum)?|[-–—]) ?(?=\d{1,2}\. ?\d{1,2}\. ?(?P<year>\d{4}))"
)
"""'12.03. bis 15.03.2024': the first has its year from the second."""

NAMES = (
    ("birth_date", words(r"\bgeb(?:\.|oren|urtsdatum)", r"\bdate of birth", r"\bborn\b", r"\bd\.?o\.?b\b")),
    ("invoice_date", words(r"rechnungsdatum", r"invoice date", r"date of invoice", r"ausstellungsdatum")),
    (
        "incident_date",
        words(r"schaden(?:tag|datum)", r"unfall(?:tag|datum)", r"date of (?:the )?(?:loss|accident|incident)"),
    ),
    ("service_date", words(r"leistungs(?:zeitraum|datum)", r"lieferdatum", r"date of service", r"service period")),
    (
        "due_date",
        words(r"\bdue\b", r"fällig", r"zahlbar", r"pay(?:able|ment)? (?:is due )?by", r"frist bis", r"zahlungsziel"),
    ),
    (
        "end_date",
        words(
            r"\bdischarged?", r"entlass(?:ung|en am)", r"\buntil\s+$", r"bis (?:zum )?$", r"\bends? on\b", r"endet am"
        ),
    ),
    # The day on which a contract was signed is not the day from which it holds.
    ("date", words(r"\b(?:made|entered into|signed|executed|dated)(?: on| as of)?\s+$", r"\bunterzeichnet am\s+$")),
    (
        "start_date",
        words(
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
_PAYS = words(r"überweis", r"zahlen sie", r"begleichen", r"\bpay\b", r"\bremit")
_RANGE = re.compile(r"\s*(?:[-–—]|bis(?: zum)?|to|until)\s*", re.IGNORECASE)
_FOLLOWS = {"start_date": "end_date", "service_date": "service_date"}
_WHEN = words(r"\b(?:morning|afternoon|evening|night) of\s+$", r"\b(?:morgen|mittag|nachmittag|abend) des\s+$")
_MONEY_AT_END = re.compile(r"\d[.,]\d{2}\s*(?:€|EUR|CHF|\$|£)?\s*$")
EARLIEST, LATEST = 1850, 2150


def find(text: str, hints: Hints) -> Iterator[FoundField]:
    """The dates of a page, in order."""
    before: FoundField | None = None
    for start, end, day, sure in sorted(_dates(text, hints.day_first)):
        if before is not None and start < before.end:
            continue
        name = _name(text, start, end, before, hints)
        before = FoundField(
            kind="date", name=name, value=day, text=text[start:end], start=start, end=end, confidence=sure
        )
        yield before


def day_first(pages: Sequence[str]) -> bool | None:
    """Whether 03/04 is the third of April: as other dates of the document show, or its money and words; else None."""
    day, month = 0, 0
    for text in pages:
        for match in PATTERNS[2].finditer(text):
            day += int(match["first"]) > 12 >= int(match["second"])
            month += int(match["second"]) > 12 >= int(match["first"])
    if day != month:
        return day > month
    whole = "\n".join(pages)[:200_000]
    if re.search(r"[£€]|\bEUR\b|\bGBP\b|\bNHS\b|\bVAT\b|\bund\b", whole):
        return True
    if re.search(r"\$\s?\d|\bUSD\b|\b[A-Z]{2} \d{5}\b", whole):
        return False
    return None


def _dates(text: str, first_is_day: bool | None) -> Iterator[tuple[int, int, str, float]]:
    for match in BEGUN.finditer(text):
        if day := _iso(match["year"], match["month"], match["day"]):
            yield match.start(), match.end("month") + 1, day, 0.85
    for pattern in PATTERNS:
        for match in pattern.finditer(text):
            parts = match.groupdict()
            sure = 0.98 if len(parts["year"]) == 4 else 0.8
            if "first" in parts:
                one, other = int(parts["first"]), int(parts["second"])
                if one <= 12 and other <= 12 and one != other:
                    sure = 0.85 if first_is_day is not None else 0.5
                as_day = one > 12 or (other <= 12 and first_is_day is not False)
                parts["day"], parts["month"] = (one, other) if as_day else (other, one)
            day = _iso(parts["year"], parts["month"], parts["day"], birth=_is_birth(text, match.start()))
            if day is not None:
                yield match.start(), match.end(), day, sure


def _iso(year: str, month: str | int, day: str | int, *, birth: bool = False) -> str | None:
    """The date in figures; None if there is no such day."""
    number = MONTHS.get(str(month).lower().rstrip(".")) or int(month)
    full = int(year)
    if len(year) == 2:
        # Of a person's birth the past is meant; else what is near the present.
        full += 1900 if full > (30 if birth else 69) else 2000
    try:
        found = date(full, number, int(day))
    except ValueError:
        return None
    return found.isoformat() if EARLIEST <= found.year <= LATEST else None


def _is_birth(text: str, at: int) -> bool:
    return NAMES[0][1].search(line_before(text, at, most=30)) is not None


def _name(text: str, start: int, end: int, before: FoundField | None, hints: Hints) -> str:
    """What it is the date of, as the words before it say; the second of a range follows the first."""
    said = line_before(text, start, most=90)
    if hints.kind == "invoice" and not said.strip() and _MONEY_AT_END.search(line_after(text, end, most=160)):
        return "service_date"  # the first column of a table
    if not said.strip() and text[start - 2 : start] != "\n\n":
        said = (
            line_before(text, max(start - 1 - len(said), 0), most=40).rstrip() + " "
        )  # broken in the middle of a sentence
        said = said if re.search(r"[a-zäöüß] $", said) else ""
    if before is not None and start >= before.end and _RANGE.fullmatch(text[before.end : start]):
        return _FOLLOWS.get(before.name, "date")
    # Only what was said since the last date, or since the next column began.
    if before is not None and before.end > start - len(said):
        said = text[before.end : start]
    said = re.split(r"\s{3,}|\. (?=[A-ZÄÖÜ])", f"{said.rstrip()} ")[-1]
    name = first_that_fits(NAMES, said)
    if name == "end_date" and _PAYS.search(line_before(text, start, most=120)):
        return "due_date"
    if name is not None:
        return name
    if hints.kind == "claim" and _WHEN.search(said):
        return "incident_date"
    if re.search(r"\bvom\s+$", said) and re.match(r"\s*bis\b", text[end : end + 8]):
        return "start_date"
    if hints.kind == "invoice" and re.search(r"^\s*(?:date|datum)\s*:\s*$", said, re.IGNORECASE):
        return "invoice_date"
    return "date"
