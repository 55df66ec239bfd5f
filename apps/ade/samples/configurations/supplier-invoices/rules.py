"""Supplier invoices: one row per invoice, with amounts that add up and no duplicates."""

from __future__ import annotations

import re
from decimal import Decimal

from ade_engine import (
    Column,
    Row,
    Rules,
    date,
    decimal,
    headers,
    looks_like_dates,
    looks_like_numbers,
    looks_like_words,
    matches,
    not_headers,
    one_of,
    pattern,
    text,
    unique,
    upper,
)

CURRENCIES = {"€": "EUR", "$": "USD", "£": "GBP"}
KNOWN = ("EUR", "USD", "GBP", "CHF", "PLN", "CZK", "SEK", "NOK", "DKK")
CENT = Decimal("0.01")

rules = Rules(day_first=True, decimal=".", min_columns=3)

rules.field(
    "supplier",
    required=True,
    detectors=[
        headers(
            "supplier | supplier name | vendor | vendor name | creditor | company | payee | billed by",
            "lieferant | kreditor | firma | fournisseur | proveedor | fornitore | dostawca",
        ),
        not_headers("supplier number | vendor id | lieferantennummer"),
        looks_like_words(),
    ],
    transforms=[text],
)
rules.field(
    "invoice_number",
    label="Invoice number",
    required=True,
    detectors=[
        headers(
            "invoice number | invoice | invoice id | document number | bill number | inv",
            "rechnungsnummer | belegnummer | facture number | numero de facture | factura",
            "faktura number",
        ),
        matches(r"[A-Z]{0,4}[-/ ]?\d[\dA-Z/-]{2,15}", score=0.1),
    ],
    transforms=[text],
    validators=[unique("supplier", "invoice_number")],
)
rules.field(
    "invoice_date",
    label="Invoice date",
    required=True,
    detectors=[
        headers(
            "invoice date | date | date of invoice | issued | issue date | document date | billing date",
            "rechnungsdatum | belegdatum | datum | date de facture | fecha | data wystawienia",
        ),
        looks_like_dates(score=0.3),
    ],
    transforms=[date],
)
rules.field(
    "due_date",
    label="Due date",
    detectors=[
        headers(
            "due date | due | payable by | payment due | pay by | payment deadline | fallig am | fallig",
            "faelligkeit | falligkeitsdatum | zahlbar bis | echeance | vencimiento",
        ),
        looks_like_dates(score=0.3),
    ],
    transforms=[date],
)
rules.field(
    "net",
    label="Net amount",
    detectors=[
        headers(
            "net | net amount | amount net | amount excl vat | amount before tax | subtotal",
            "taxable amount | netto | nettobetrag | betrag netto | montant ht | base imponible",
        ),
        looks_like_numbers(),
    ],
    transforms=[decimal(places=2)],
)
rules.field(
    "vat",
    label="VAT",
    detectors=[
        headers(
            "vat | vat amount | tax | tax amount | sales tax | gst | mwst | mwst betrag | ust",
            "umsatzsteuer | steuer | steuerbetrag | tva | iva",
        ),
        looks_like_numbers(),
    ],
    transforms=[decimal(places=2)],
)
rules.field(
    "gross",
    label="Gross amount",
    required=True,
    detectors=[
        headers(
            "gross | gross amount | total | total amount | invoice total | invoice amount | amount due",
            "amount | amount incl vat | brutto | bruttobetrag | gesamtbetrag | rechnungsbetrag | betrag",
            "montant ttc",
        ),
        looks_like_numbers(),
    ],
    transforms=[decimal(places=2)],
)
rules.field(
    "currency",
    detectors=[
        headers("currency | currency code | wahrung | waehrung | devise | moneda"),
        one_of([*KNOWN, *CURRENCIES]),
    ],
    transforms=[upper],
    validators=[pattern(r"[A-Z]{3}", "is not a currency code")],
)
rules.field(
    "purchase_order",
    label="Purchase order",
    detectors=[
        headers("purchase order | po | po number | order number | your order | bestellnummer | bestellung", "commande"),
        matches(r"(PO|45)[- ]?\d{3,}", score=0.2),
    ],
    transforms=[text],
)


@rules.detector("vat")
def is_not_a_rate(column: Column) -> float:
    """A column of percentages has tax rates, not amounts."""
    rates = sum("%" in sample for sample in column.texts)
    is_named_rate = bool(re.search(r"%|rate|satz|taux", column.title.lower()))
    return -1.0 if column.unit == "%" or is_named_rate or rates * 2 > max(1, len(column.texts)) else 0.0


@rules.transform("currency", blanks=True)
def find_currency(value: str | None, row: Row) -> str | None:
    """Take the currency from its column, from the header of an amount, or from the gross amount itself."""
    if value:
        return CURRENCIES.get(value, value)
    if unit := row.units.get("gross") or row.units.get("net"):
        return unit
    amount = str(row.raw.get("gross") or "")
    by_sign = next((code for sign, code in CURRENCIES.items() if sign in amount), None)
    return by_sign or next((code for code in KNOWN if code in amount), None)


@rules.transform("gross", blanks=True)
def add_net_and_tax(value: Decimal | None, row: Row) -> Decimal | None:
    """Compute the gross amount where only net and tax are given."""
    net, vat = row["net"], row["vat"]
    if value is None and isinstance(net, Decimal) and isinstance(vat, Decimal):
        return net + vat
    return value


@rules.check
def amounts_add_up(row: Row) -> str | None:
    """Reject rows whose net and tax don't add up to gross, apart from rounding."""
    net, vat, gross = row["net"], row["vat"], row["gross"]
    if (
        isinstance(net, Decimal)
        and isinstance(vat, Decimal)
        and isinstance(gross, Decimal)
        and abs(net + vat - gross) > 2 * CENT
    ):
        return f"net {net} and tax {vat} add up to {net + vat}, not {gross}"
    return None


@rules.check
def due_date_is_not_before_invoice_date(row: Row) -> str | None:
    """Reject invoices that are due before their date."""
    issued, due = row["invoice_date"], row["due_date"]
    is_early = issued and due and str(due) < str(issued)
    return f"the due date {due} is before the invoice date {issued}" if is_early else None
