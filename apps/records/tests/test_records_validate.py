"""Validation: the findings that a person should check."""

from __future__ import annotations

import pytest
from apps.records.extractors import interpret
from apps.records.tests import labels
from apps.records.validate import validate

TODAY = "2026-11-16"


def codes(text: str, kind: str) -> set[str]:
    return {finding.code for finding in validate(kind, interpret([text], kind=kind), today=TODAY)}


@pytest.mark.parametrize("document_set", labels.SETS)
def test_correct_documents_give_no_findings(document_set: str) -> None:
    findings = {
        document.name: [
            finding.code
            for finding in validate(document.kind, interpret(document.pages, kind=document.kind), today=TODAY)
            if not finding.code.startswith("missing_")
        ]
        for document in labels.load(document_set)
    }
    assert {name: found for name, found in findings.items() if found} == {}


INVOICE = """Invoice No.: A-100
Invoice Date: 1 March 2024
Due Date: {due}

Description         Amount
Work                $100.00
Travel              $50.00
Subtotal            $150.00
Sales tax           {tax}
TOTAL DUE           {total}
IBAN {iban}
"""
CORRECT = {"due": "31 March 2024", "tax": "$15.00", "total": "$165.00", "iban": "DE89 3704 0044 0532 0130 00"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, set()),
        ({"total": "$156.00"}, {"total_is_not_the_sum"}),
        ({"tax": "$0.00", "total": "$150.00"}, set()),
        ({"due": "1 February 2024"}, {"due_date_before_invoice_date"}),
        ({"iban": "DE89 3704 0044 0532 0130 01"}, {"iban_checksum"}),
    ],
)
def test_contradictions_in_an_invoice_are_found(changed: dict[str, str], expected: set[str]) -> None:
    assert codes(INVOICE.format(**CORRECT | changed), "invoice") == expected


def test_items_that_do_not_add_up_are_found() -> None:
    wrong = INVOICE.format(**CORRECT).replace("$50.00", "$60.00")
    assert codes(wrong, "invoice") == {"items_are_not_the_sum"}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("invoice", "Invoice\nsome words", {"missing_invoice_number", "missing_total", "missing_date"}),
        ("medical_report", "Diagnosis\nnone", {"missing_patient", "missing_birth_date"}),
        ("claim", "Claim form", {"missing_policy_number", "missing_incident_date"}),
        ("contract", "Agreement", {"missing_start_date"}),
        ("letter", "Dear Ann", set()),
        ("other", "words", set()),
        ("claim", "Policy Number: P-1\nDate of loss: 3 May 2031", {"incident_date_in_future"}),
        ("letter", "seen on 03/04/2024", {"ambiguous_date"}),
    ],
)
def test_missing_and_impossible_values_are_found(kind: str, text: str, expected: set[str]) -> None:
    assert codes(text, kind) == expected
