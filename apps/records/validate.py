"""Validate: what a document of its kind must have, and what contradicts itself. Findings fail nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from apps.records.extractors.fields import FoundField

CENT = Decimal("0.01")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that a person should look at; `code` is stable."""

    code: str
    message: str


NEEDS = {
    "invoice": ("invoice_number", "total"),
    "medical_report": ("patient", "birth_date"),
    "claim": ("policy_number", "incident_date"),
    "contract": ("start_date",),
}
CALLED = {
    "invoice_number": "no invoice number",
    "total": "no total",
    "patient": "no patient's name",
    "birth_date": "no date of birth",
    "policy_number": "no policy number",
    "incident_date": "no date of the loss",
    "start_date": "no date on which it begins",
}
PAIRS = (("start_date", "end_date"), ("invoice_date", "due_date"), ("birth_date", "start_date"))


def validate(kind: str, fields: Sequence[FoundField], *, today: str) -> list[Finding]:
    """All that is missing, wrong or contradictory; `today` is an ISO date."""
    return [*_missing(kind, fields), *_checksums(fields), *_dates(fields, today), *_sums(kind, fields)]


def _missing(kind: str, fields: Sequence[FoundField]) -> Iterator[Finding]:
    names = {one.name for one in fields}
    for name in NEEDS.get(kind, ()):
        if name not in names:
            yield Finding(code=f"missing_{name}", message=f"there is {CALLED[name]}, which such a document has")
    if kind == "invoice" and not {"invoice_date", "date"} & names:
        yield Finding(code="missing_date", message="there is no date, which such a document has")


def _checksums(fields: Sequence[FoundField]) -> Iterator[Finding]:
    for one in fields:
        if one.name in ("iban", "vat_id", "insurance_number") and one.confidence < 0.5:
            yield Finding(
                code=f"{one.name}_checksum", message=f"{one.text} (page {one.page}): its check digits are wrong"
            )


def _dates(fields: Sequence[FoundField], today: str) -> Iterator[Finding]:
    dates = [one for one in fields if one.kind == "date"]
    for one in dates:
        if one.name in ("birth_date", "incident_date") and one.value > today:
            yield Finding(code=f"{one.name}_in_future", message=f"{one.text} (page {one.page}) is yet to come")
        if one.confidence <= 0.5:
            yield Finding(
                code="ambiguous_date",
                message=f"{one.text} (page {one.page}) may be read with the day or with the month first",
            )
    for first, second in PAIRS:
        begins, ends = ([one for one in dates if one.name == name] for name in (first, second))
        if begins and ends and min(one.value for one in begins) > max(one.value for one in ends):
            yield Finding(
                code=f"{second}_before_{first}", message=f"{ends[-1].text} comes before {begins[0].text}, its beginning"
            )


def _sums(kind: str, fields: Sequence[FoundField]) -> Iterator[Finding]:
    """Sums of a document in one currency; a total that is said twice is compared with itself."""
    amounts = [one for one in fields if one.kind == "amount"]
    if kind not in ("invoice", "claim") or len({one.unit for one in amounts}) != 1:
        return
    items, nets, taxes, totals = (
        [one for one in amounts if one.name == name] for name in ("item", "net", "tax", "total")
    )
    if not totals:
        return
    total, said = Decimal(totals[-1].value), totals[-1].text
    net = Decimal(nets[-1].value) if nets else None
    tax = sum((Decimal(one.value) for one in taxes), Decimal(0))
    listed = sum((Decimal(one.value) for one in items), Decimal(0))
    if net is not None and abs(net + tax - total) > CENT:
        yield Finding(
            code="total_is_not_the_sum",
            message=f"{nets[-1].text} and {tax} of tax are {net + tax}, the total says {said}",
        )
    if len(items) > 1:
        expected = net if net is not None else total
        # Items may be listed with the tax or without.
        if all(abs(listed - possible) > CENT for possible in (expected, total, total - tax)):
            yield Finding(
                code="items_are_not_the_sum",
                message=f"{len(items)} items come to {listed}, the document says {expected}",
            )
    if len({one.value for one in totals}) > 1:
        several = " and ".join(dict.fromkeys(one.text for one in totals))
        yield Finding(code="several_totals", message=f"the document names several totals: {several}")
