"""Amounts: find sums of money, by their currency or by their position, and name them (total, tax, item …)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

from apps.records.extractors.fields import FoundField, Hints, any_of, first_match, line_before

CURRENCIES = {
    "€": "EUR",
    "eur": "EUR",
    "euro": "EUR",
    "euros": "EUR",
    "$": "USD",
    "us$": "USD",
    "usd": "USD",
    "dollars": "USD",
    "£": "GBP",
    "gbp": "GBP",
    "chf": "CHF",
    "fr.": "CHF",
    "sfr.": "CHF",
    "franken": "CHF",
}
_NUMBER = (
    r"(?P<number>(?:\d{1,3}(?:[.,'’]\d{3})+|\d{1,3}(?: \d{3})+(?=,\d\d)|\d{1,9})(?:[.,]\d{2}(?!\d)|,[-–—]+|\.[-–—]+)?)"
)
_SCALE = r"(?P<scale>(?i:thousand|tsd|million(?:en)?|mio|billion|mrd|milliarden?))\b\.?"
_SCALED = rf"(?P<number>\d{{1,3}}(?:[.,]\d{{3}})*(?:[.,]\d{{1,2}})?)\s?{_SCALE}"
SCALES = {"t": 1_000, "mio": 1_000_000, "million": 1_000_000, "b": 1_000_000_000, "m": 1_000_000_000}
_SIGN = r"(?P<sign>[-–−]\s?)?"
_BEFORE = r"(?P<before>US\$|[€$£]|(?<![A-Za-z])(?:EUR|USD|GBP|CHF|Fr\.|SFr\.)(?=[\s\d]))"
_AFTER = r"(?P<after>[€$£]|(?:EUR|USD|GBP|CHF|Euros?|Franken|dollars)\b)"
_FREE = r"(?<![\w.,'’/])"

MARKED = re.compile(
    rf"{_BEFORE}\s?{_SIGN}{_NUMBER}(?![\d]|[.,]\d)|{_FREE}{_SIGN.replace('sign', 'sign2')}"
    rf"{_NUMBER.replace('number', 'number2')}\s?{_AFTER}"
)
SCALED = re.compile(
    rf"{_BEFORE}\s?{_SIGN}{_SCALED}|{_FREE}{_SIGN.replace('sign', 'sign2')}"
    rf"{_SCALED.replace('number', 'number2').replace('scale', 'scale2')}\s?{_AFTER}"
)
"""Amounts such as 'USD 1.5 million' and '3 Mio. €'."""
PLAIN = re.compile(
    rf"{_FREE}{_SIGN}(?P<number>(?:\d{{1,3}}(?:[.,'’]\d{{3}})+|\d{{1,9}})[.,]\d{{2}})(?![\d%]|[.,]\d|\s?%|\s?(?:mg|ml|kg|mm|cm|m²))"
)
MONEY_TO_THE_END = re.compile(r"\s*(?:€|EUR|USD|GBP|CHF|\$|£)?\s*$")

NAMES = (
    (
        "net",
        any_of(
            r"zwischensumme",
            r"\bnetto(?!\w*(?:preis|gewicht))",
            r"\bsub-?total",
            r"\bnet (?:total|amount)",
            r"total (?:exkl|excl)",
            r"summe netto",
        ),
    ),
    (
        "total",
        any_of(
            r"gesamt(?:betrag|summe|preis)?\b",
            r"rechnungs(?:betrag|summe)",
            r"end(?:betrag|summe)",
            r"zu zahlen",
            r"zahlbetrag",
            r"\btotal\b",
            r"amount due",
            r"balance due",
            r"grand total",
            r"zusammen",
            r"bruttobetrag",
            r"\bsumme\b",
            r"schadenhöhe",
        ),
    ),
    ("tax", any_of(r"\bmwst", r"\bust\b", r"umsatzsteuer", r"mehrwertsteuer", r"\bvat\b", r"\btax\b", r"\bgst\b")),
)
_TAXED = any_of(r"(?:inkl|incl)\w*\.?\s*(?:\d+ ?%\s*)?(?:mwst|ust|vat|tax)")
TABLE_HEAD = any_of(
    r"\b(?:(?:gesamt|einzel)?preis|\w*betrag|summe|amount|price|total)\b"
    r"(?: in)?\s*\(?(?:€|\$|£|EUR|USD|GBP|CHF)?\)?\s*$"
)
"""The heading of a table whose last column has amounts."""
QUANTITY = any_of(
    r"\b(?:quantity|qty|hours?|days?|weight|units?|pieces?|litres?|miles?)\b",
    r"\b(?:anzahl|menge|stunden|tage|stück)\b|gewicht\b",
    r"\b(?:kg|km|lbs?|hrs?|std)\b",
)
"""After one of these words, a number without a currency is a quantity, not an amount of money."""


def find(text: str, hints: Hints) -> Iterator[FoundField]:
    """Yield the amounts of a page: those with a currency, and those that a label or a table heading marks as money."""
    for offset, line, in_table, below_head in _lines(text, hints):
        marked = list(_marked(line))
        plain = [] if marked else list(PLAIN.finditer(line))
        for match in marked:
            value = decimal_of(match["number"] or match["number2"], _scale(match))
            unit = CURRENCIES[(match["before"] or match["after"]).lower()]
            at_end = MONEY_TO_THE_END.fullmatch(line, match.end()) is not None
            yield _found(text, offset, line, match, value, unit, in_table and at_end, hints, 0.97)
        for match in plain[-1:]:
            at_end = MONEY_TO_THE_END.fullmatch(line, match.end()) is not None
            before = line_before(text, offset + match.start(), most=90)
            if at_end and hints.currency and (below_head or _label(before)) and not QUANTITY.search(_column(before)):
                yield _found(
                    text, offset, line, match, decimal_of(match["number"]), hints.currency, in_table, hints, 0.85
                )


def currency_of(pages: Sequence[str]) -> str | None:
    """Return the currency that occurs most often in a document."""
    currencies = Counter(
        CURRENCIES[mark.lower()]
        for text in pages
        for mark in re.findall(r"[€$£]|\b(?:EUR|USD|GBP|CHF|Euro|Franken)\b", text)
    )
    return currencies.most_common(1)[0][0] if currencies else None


def decimal_of(number: str, scale: str | None = None) -> Decimal:
    """Return the value of a number in German, Swiss or English notation; `scale` is a word such as 'million'."""
    whole = re.sub(r"[,.][-–—]+$", "", number)
    cents = re.search(r"[.,](\d{2})$" if scale is None else r"[.,](\d{1,2})$", whole)
    if cents:
        whole = whole[: cents.start()]
    value = Decimal(re.sub(r"\D", "", whole) + "." + (cents[1] if cents else "00"))
    if scale is None:
        return value
    factor = next(factor for word, factor in SCALES.items() if scale.lower().startswith(word))
    return (value * factor).quantize(Decimal("0.01"))


def _marked(line: str) -> Iterator[re.Match[str]]:
    """Yield amounts with a currency; 'USD 1.5 million' does not also match as 'USD 1.5'."""
    scaled = list(SCALED.finditer(line))
    yield from scaled
    for match in MARKED.finditer(line):
        if all(match.end() <= other.start() or other.end() <= match.start() for other in scaled):
            yield match


def _scale(match: re.Match[str]) -> str | None:
    parts = match.groupdict()
    return parts.get("scale") or parts.get("scale2")


def _lines(text: str, hints: Hints) -> Iterator[tuple[int, str, bool, bool]]:
    """Yield each line with its offset, whether it is in a table, and whether the table's last column has amounts."""
    below_head, offset = False, 0
    for line in text.split("\n"):
        columns = re.search(r"\S(?: {2,}|\t)\s*\S*\d[.,]\d{2}", line) is not None
        is_head = TABLE_HEAD.search(line) is not None and not re.search(r"\d[.,]\d{2}", line)
        listed = hints.kind in ("invoice", "claim")
        yield offset, line, listed and (below_head or columns) and not is_head, listed and below_head and not is_head
        below_head = (below_head or is_head) and not re.match(r"\s*(?:bitte|please|payment|zahl)", line, re.IGNORECASE)
        offset += len(line) + 1


def _column(before: str) -> str:
    """Return the words since the previous number in the line; only they describe this number."""
    return re.split(r"\d[.,]\d{2}\s", before)[-1][-60:]


def _label(before: str) -> str | None:
    """Return the name of an amount, by the words before it."""
    column = _column(before)
    if _TAXED.search(column):
        return "total"
    return first_match(NAMES, column)


def _found(
    text: str,
    offset: int,
    line: str,
    match: re.Match[str],
    value: Decimal,
    unit: str,
    listed: bool,
    hints: Hints,
    confidence: float,
) -> FoundField:
    if match["sign"] or match.groupdict().get("sign2"):
        value = -value
    start, end = offset + match.start(), offset + match.end()
    name = _label(line_before(text, start, most=90))
    if name is None:
        name = "item" if listed else "amount"
    elif not listed and not _is_labelled(line_before(text, start, most=90)):
        name = "amount" if name == "tax" else name
    return FoundField(
        kind="amount",
        name=name,
        value=str(value),
        unit=unit,
        text=text[start:end],
        start=start,
        end=end,
        confidence=confidence,
    )


def _is_labelled(before: str) -> bool:
    return re.search(r"[:\t]|\s{2,}", before) is not None
