"""Identifiers: account, tax and insurance numbers by their checksums, others by the words before them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.records.extractors.checksums import (
    iban_is_right,
    iban_length,
    insurance_number_is_right,
    nhs_number_is_right,
    vat_id_is_right,
)
from apps.records.extractors.dates import PATTERNS
from apps.records.extractors.fields import FoundField, Hints, line_before, words

IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
VAT_ID = re.compile(
    r"\b(?:DE ?\d{9}|ATU ?\d{8}|GB ?\d{3} ?\d{4} ?\d{2}|GB\d{9}|CHE-?\d{3}\.?\d{3}\.?\d{3}|FR[A-Z0-9]{2} ?\d{9})\b"
)
BIC = re.compile(r"\b(?:BIC|SWIFT(?:-Code)?)\b[ :]*(?P<value>[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)\b")
_SUB = r"\.(?:\d{1,2}|-)"
DIAGNOSIS = re.compile(rf"(?<![\w.])[A-TV-Z]\d{{2}}{_SUB}(?![\w.]{{0,20}}\d)")
"""A code of the ICD-10, as medical reports have them; elsewhere, or without its dot, only where it is called so."""
LABELLED_DIAGNOSIS = re.compile(
    r"\bICD(?:-?10)?(?:-(?:GM|CM))?(?:[ -]?[Cc]odes?)?[ \t]*:?[ \t]*"
    rf"(?P<value>[A-TV-Z]\d{{2}}(?:{_SUB})?)(?![\w.]{{0,20}}\d)"
)

SORT_CODE = words(r"\bsort code\b")
_NUMBER = r"(?:\s?-?\s?(?:Nr|No|Num|Number|Nummer|Reference|Ref|ID)\b\.?)"
_VALUE = (
    r"(?P<value>(?=[A-Z0-9/.\- ]{0,12}\d)[A-Z0-9]{1,20}(?:[-/.][A-Z0-9]{1,20}){0,5}(?: [A-Z0-9-]*\d[A-Z0-9-]*){0,5})"
)
_BETWEEN = r"[ \t]*[:#.]?[ \t]*(?:#[ \t]*)?"


def _labelled(label: str) -> re.Pattern[str]:
    # The words in any case, the value as it is written: capitals and figures.
    return re.compile(rf"(?i:(?<![\w])(?:{label})){_BETWEEN}{_VALUE}(?![\w])")


LABELLED = (
    ("insurance_number", _labelled(rf"Versicherten{_NUMBER}|Krankenversicherten{_NUMBER}|NHS{_NUMBER}|KV-?Nr\.?")),
    (
        "invoice_number",
        _labelled(rf"Rechnung(?:s{_NUMBER}|{_NUMBER})?|Invoice{_NUMBER}|Invoice|Rechnungs-?Nr\.?|RG-?Nr\.?"),
    ),
    ("customer_number", _labelled(rf"Kunden{_NUMBER}|Customer{_NUMBER}|Account{_NUMBER}|Client{_NUMBER}")),
    (
        "order_number",
        _labelled(rf"(?:Bestell|Auftrags){_NUMBER}|(?:PO|P\.O\.|Purchase Order|Order){_NUMBER}|PO(?!\W+Box)"),
    ),
    ("register_number", _labelled(rf"HR[AB]|(?:Company|Registration){_NUMBER}|registered[^.\n]{{0,40}} number")),
    ("sort_code", _labelled("Sort code")),
    (
        "policy_number",
        _labelled(rf"Versicherungs(?:schein)?{_NUMBER}|Police(?:n)?{_NUMBER}|Policy{_NUMBER}|Vertrags{_NUMBER}"),
    ),
    ("claim_number", _labelled(rf"Schaden{_NUMBER}|Claim{_NUMBER}|Schadens{_NUMBER}")),
    ("patient_number", _labelled(rf"Patienten{_NUMBER}|(?:Patient|Hospital|Chart){_NUMBER}|MRN")),
    (
        "case_number",
        _labelled(
            rf"Fall{_NUMBER}|Akten(?:zeichen|{_NUMBER})|Vorgangs{_NUMBER}|(?:Case|File|Our){_NUMBER}|Unser Zeichen|Az\."
        ),
    ),
    ("tax_number", _labelled(r"Steuer(?:nummer|-?Nr\.?)|St\.-?Nr\.?|Tax ID|EIN|TIN")),
)


def find(text: str, hints: Hints) -> Iterator[FoundField]:
    """The identifiers of a page; an account number with a wrong checksum is given with little confidence."""
    yield from _ibans(text)
    for match in VAT_ID.finditer(text):
        value = re.sub(r"[^A-Z0-9]", "", match[0])
        right = vat_id_is_right(value)
        yield _found("vat_id", value, match[0], match.start(), 0.98 if right else 0.6 if right is None else 0.3)
    for match in BIC.finditer(text):
        yield _found("bic", match["value"], match["value"], match.start("value"), 0.9)
    for match in LABELLED_DIAGNOSIS.finditer(text):
        yield _found("diagnosis_code", match["value"], match["value"], match.start("value"), 0.95)
    for match in DIAGNOSIS.finditer(text) if hints.kind == "medical_report" else ():
        yield _found("diagnosis_code", match[0], match[0], match.start(), 0.9)
    for name, pattern in LABELLED:
        for match in pattern.finditer(text):
            value = match["value"]
            start = match.start("value")
            is_date = name != "sort_code" and any(date.fullmatch(value) for date in PATTERNS[:3])
            if not is_date and not _is_money(value):
                # Beside a sort code it is the account of a bank, not of a customer.
                bank = name == "customer_number" and SORT_CODE.search(line_before(text, start))
                yield _number("account_number" if bank else name, value, start)


def _ibans(text: str) -> Iterator[FoundField]:
    for match in IBAN.finditer(text):
        length = iban_length(match[0][:2])
        if length is None:
            continue
        end, seen = match.start(), 0
        while seen < length and end < match.end():
            seen += text[end] != " "
            end += 1
        value = text[match.start() : end].replace(" ", "")
        if seen == length:
            yield _found("iban", value, text[match.start() : end], match.start(), 0.99 if iban_is_right(value) else 0.3)


def _number(name: str, value: str, start: int) -> FoundField:
    plain, sure = value, 0.9
    if name == "insurance_number":
        plain = value.replace(" ", "").replace("-", "")
        right = nhs_number_is_right(plain) if plain.isdigit() else insurance_number_is_right(plain)
        sure = 0.98 if right else 0.4
    return _found(name, plain, value, start, sure)


def _is_money(value: str) -> bool:
    return re.fullmatch(r"\d{1,3}(?:[.,]\d{3})*[.,]\d{2}", value) is not None


def _found(name: str, value: str, text: str, start: int, sure: float) -> FoundField:
    return FoundField(
        kind="identifier", name=name, value=value, text=text, start=start, end=start + len(text), confidence=sure
    )
