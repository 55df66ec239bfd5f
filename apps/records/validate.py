"""Validate: find missing, wrong and contradictory fields of a document. A finding is a hint and fails no run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from apps.records.extractors.fields import FoundField

CENT = Decimal("0.01")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that a person should check; `code` is stable."""

    code: str
    message: str


REQUIRED = {
    "invoice": ("invoice_number", "total"),
    "medical_report": ("patient", "birth_date"),
    "claim": ("policy_number", "incident_date"),
    "contract": ("start_date",),
}
LABELS = {
    "invoice_number": "invoice number",
    "total": "total",
    "patient": "patient name",
    "birth_date": "date of birth",
    "policy_number": "policy number",
    "incident_date": "date of loss",
    "start_date": "start date",
    "end_date": "end date",
    "invoice_date": "invoice date",
    "due_date": "due date",
}
KINDS = {"invoice": "an invoice", "medical_report": "a medical report", "claim": "a claim", "contract": "a contract"}
IN_ORDER = (("start_date", "end_date"), ("invoice_date", "due_date"), ("birth_date", "start_date"))


def validate(kind: str, fields: Sequence[FoundField], *, today: str) -> list[Finding]:
    """List everything that is missing, wrong or contradictory; `today` is an ISO date."""
    return [*_missing(kind, fields), *_checksums(fields), *_dates(fields, today), *_sums(kind, fields)]


def _missing(kind: str, fields: Sequence[FoundField]) -> Iterator[Finding]:
    names = {one.name for one in fields}
    for name in REQUIRED.get(kind, ()):
        if name not in names:
            yield Finding(
                code=f"missing_{name}", message=f"No {LABELS[name]} was found; {KINDS[kind]} should have one."
            )
    if kind == "invoice" and not {"invoice_date", "date"} & names:
        yield Finding(code="missing_date", message="No date was found; an invoice should have one.")


def _checksums(fields: Sequence[FoundField]) -> Iterator[Finding]:
    for one in fields:
        if one.name in ("iban", "vat_id", "insurance_number") and one.confidence < 0.5:
            yield Finding(
                code=f"{one.name}_checksum", message=f"The check digits of {one.text} (page {one.page}) are wrong."
            )


def _dates(fields: Sequence[FoundField], today: str) -> Iterator[Finding]:
    dates = [one for one in fields if one.kind == "date"]
    for one in dates:
        if one.name in ("birth_date", "incident_date") and one.value > today:
            message = f"The {LABELS[one.name]} {one.text} (page {one.page}) is in the future."
            yield Finding(code=f"{one.name}_in_future", message=message)
        if one.confidence <= 0.5:
            yield Finding(
                code="ambiguous_date",
                message=f"{one.text} (page {one.page}) is ambiguous: the day or the month may come first.",
            )
    for first, second in IN_ORDER:
        starts, ends = ([one for one in dates if one.name == name] for name in (first, second))
        if starts and ends and min(one.value for one in starts) > max(one.value for one in ends):
            yield Finding(
                code=f"{second}_before_{first}",
                message=f"The {LABELS[second]} {ends[-1].text} is before the {LABELS[first]} {starts[0].text}.",
            )


def _sums(kind: str, fields: Sequence[FoundField]) -> Iterator[Finding]:
    """Compare the total with its parts, and totals with each other, if the document uses a single currency."""
    amounts = [one for one in fields if one.kind == "amount"]
    if kind not in ("invoice", "claim") or len({one.unit for one in amounts}) != 1:
        return
    items, nets, taxes, totals = (
        [one for one in amounts if one.name == name] for name in ("item", "net", "tax", "total")
    )
    if not totals:
        return
    total = Decimal(totals[-1].value)
    net = Decimal(nets[-1].value) if nets else None
    tax = sum((Decimal(one.value) for one in taxes), Decimal(0))
    listed = sum((Decimal(one.value) for one in items), Decimal(0))
    if net is not None and abs(net + tax - total) > CENT:
        yield Finding(
            code="total_is_not_the_sum",
            message=f"{net} net plus {tax} tax is {net + tax}, but the total is {total}.",
        )
    if len(items) > 1:
        expected = net if net is not None else total
        # Items may be listed with or without tax.
        if all(abs(listed - possible) > CENT for possible in (expected, total, total - tax)):
            yield Finding(
                code="items_are_not_the_sum",
                message=f"The {len(items)} items add up to {listed}, but the document says {expected}.",
            )
    if len({one.value for one in totals}) > 1:
        several = " and ".join(dict.fromkeys(one.text for one in totals))
        yield Finding(code="several_totals", message=f"The document has several totals: {several}.")
