"""Checks of extraction: the samples are read, fields and passages are right, and a question finds its answer."""

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
    """Wait until every sample has come to its end, then look at what came of them."""
    found = client.until(lambda: _ended(client), "every sample was processed, or failed")
    states = {name: document["status"] for name, document in found.items()}
    expected = {name: "Failed" if name == "scan.pdf" else "Processed" for name in states}
    yield Checked(what=f"{len(states)} documents have ended as they should", fault=difference(states, expected))
    scan = found["scan.pdf"]["job"]
    said = (scan["status"], scan["attempts"], "pictures without text" in (scan["error_log"] or ""))
    yield Checked(what="a scan without text has failed and says why", fault=difference(said, ("FAILED", 1, True)))
    for name, wanted in FIELDS.items():
        detail = client.get(f"/documents/{found[name]['id']}")
        fields = {field["name"]: field["value"] for field in detail["fields"]}
        told = {field: fields.get(field) for field in wanted}
        yield Checked(what=f"the fields of {name} were read", fault=difference(told, wanted))
    for question, (name, words) in QUESTIONS.items():
        first = client.get("/search", q=question)["passages"][0]
        right = first["document"] == name and words in " ".join(first["text"].split())
        fault = None if right else f"the first passage is of {first['document']}: {first['text']!r}"
        yield Checked(what=f"{question}", fault=fault)


def _ended(client: CheckClient) -> dict[str, Any] | None:
    documents = client.get("/documents")["documents"]
    if len(documents) < 6 or any(document["status"] == "Processing" for document in documents):
        return None
    return {document["name"]: document for document in documents}
