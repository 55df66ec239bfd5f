"""Checks: the samples are read, their fields are right, and questions find the right passages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.shared.checks import CheckClient, Checked, difference

QUESTIONS = {
    "Who has to repair the roof of the boat house?": ("lease.pdf", "repairs roof"),
    "When must the fog horn's compressor be started?": ("manual.pdf", "compressor"),
    "How many seal pups were alive at the end of the summer?": ("survey.pdf", "31 were alive"),
    "What happens if an invoice is paid late?": ("invoice.pdf", "interest"),
}
FIELDS = {
    "invoice.pdf": {"Due date": "2 April 2031", "Customer": "Lighthouse Trust of Skarholm"},
    "contract.pdf": {"Contractor": "Vik Marine Works AS", "Fee": "18,400.00 EUR"},
    "lease.pdf": {"Tenant": "Ingrid Solberg", "Winch": "good"},
}


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait until all samples have been processed or have failed, then check the results."""
    documents = client.until(lambda: _finished_documents(client), "every sample has been processed or has failed")
    states = {name: document["status"] for name, document in documents.items()}
    expected = {name: "Failed" if name == "scan.pdf" else "Processed" for name in states}
    yield Checked(what=f"{len(states)} documents have the expected status", fault=difference(states, expected))
    scan = documents["scan.pdf"]["job"]
    outcome = (scan["status"], scan["attempts"], "images without text" in (scan["error_log"] or ""))
    yield Checked(what="a scan without text has failed with the reason", fault=difference(outcome, ("FAILED", 1, True)))
    for name, expected_fields in FIELDS.items():
        detail = client.get(f"/documents/{documents[name]['id']}")
        fields = {field["name"]: field["value"] for field in detail["fields"]}
        actual = {field: fields.get(field) for field in expected_fields}
        yield Checked(what=f"the fields of {name} were read", fault=difference(actual, expected_fields))
    for question, (name, words) in QUESTIONS.items():
        first = client.get("/search", q=question)["passages"][0]
        right = first["document"] == name and words in " ".join(first["text"].split())
        fault = None if right else f"the first passage is from {first['document']}: {first['text']!r}"
        yield Checked(what=question, fault=fault)


def _finished_documents(client: CheckClient) -> dict[str, Any] | None:
    documents = client.get("/documents")["documents"]
    if len(documents) < 6 or any(document["status"] == "Processing" for document in documents):
        return None
    return {document["name"]: document for document in documents}
