"""Identifiers: find IBANs, VAT ids and other numbers, by their form and checksum or by the words before them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from apps.records.extractors.checksums import (
    iban_length,
    is_valid_iban,
    is_valid_insurance_number,
    is_valid_nhs_number,
    is_valid_vat_id,
)
from apps.records.extractors.dates import PATTERNS
from apps.records.extractors.fields import FoundField, Hints, any_of, line_before

IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
VAT_ID = re.compile(
    r"\b(?:DE ?\d{9}|ATU ?\d{8}|GB ?\d{3} ?\d{4} ?\d{2}|GB\d{9}|CHE-?\d{3}\.?\d{3}\.?\d{3}|FR[A-Z0-9]{2} ?\d{9})\b"
)
BIC = re.compile(r"\b(?:BIC|SWIFT(?:-Code)?)\b[ :]*(?P<value>[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)\b")
_SUB = r"\.(?:\d{1,2}|-)"
DIAGNOSIS = re.compile(rf"(?<![\w.])[A-TV-Z]\d{{2}}{_SUB}(?![\w.]{{0,20}}\d)")
"""An ICD-10 code, searched for only in medical reports. Elsewhere, or without a dot, a code needs a label."""
LABELLED_DIAGNOSIS = re.compile(
    r"\bICD(?:-?10)?(?:-(?:GM|CM))?(?:[ -]?[Cc]odes?)?[ \t]*:?[ \t]*"
    rf"(?P<value>[A-TV-Z]\d{{2}}(?:{_SUB})?)(?![\w.]{{0,20}}\d)"
)

SORT_CODE = any_of(r"\bsort code\b")
_NUMBER = r"(?:\s?-?\s?(?:Nr|No|Num|Number|Nummer|Reference|Ref|ID)\b\.?)"
_VALUE = (
    r"(?P<value>(?=[A-Z0-9/.\- ]{0,12}\d)[A-Z0-9]{1,20}(?:[-/.][A-Z0-9]{1,20}){0,5}(?: [A-Z0-9-]*\d[A-Z0-9-]*){0,5})"
)
_BETWEEN = r"[ \t]*[:#.]?[ \t]*(?:#[ \t]*)?"


def _labelled(label: str) -> re.Pattern[str]:
    # The label may be in any case; the value must be capitals and digits.
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
    """Yield the identifiers of a page; one with a wrong checksum gets a low confidence."""
    yield from _ibans(text)
    for match in VAT_ID.finditer(text):
        value = re.sub(r"[^A-Z0-9]", "", match[0])
        valid = is_valid_vat_id(value)
        yield _found("vat_id", value, match[0], match.start(), 0.98 if valid else 0.6 if valid is None else 0.3)
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
                # After a sort code, 'account number' means a bank account and not a customer account.
                is_bank = name == "customer_number" and SORT_CODE.search(line_before(text, start))
                yield _number("account_number" if is_bank else name, value, start)


def _ibans(text: str) -> Iterator[FoundField]:
    for match in IBAN.finditer(text):
        length = iban_length(match[0][:2])
        if length is None:
            continue
        end, characters = match.start(), 0
        while characters < length and end < match.end():
            characters += text[end] != " "
            end += 1
        value = text[match.start() : end].replace(" ", "")
        if characters == length:
            yield _found("iban", value, text[match.start() : end], match.start(), 0.99 if is_valid_iban(value) else 0.3)


def _number(name: str, value: str, start: int) -> FoundField:
    plain, confidence = value, 0.9
    if name == "insurance_number":
        plain = value.replace(" ", "").replace("-", "")
        valid = is_valid_nhs_number(plain) if plain.isdigit() else is_valid_insurance_number(plain)
        confidence = 0.98 if valid else 0.4
    return _found(name, plain, value, start, confidence)


def _is_money(value: str) -> bool:
    return re.fullmatch(r"\d{1,3}(?:[.,]\d{3})*[.,]\d{2}", value) is not None


def _found(name: str, value: str, text: str, start: int, confidence: float) -> FoundField:
    return FoundField(
        kind="identifier", name=name, value=value, text=text, start=start, end=start + len(text), confidence=confidence
    )
