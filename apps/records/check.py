"""Checks: the samples were processed, and the right fields were found in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.shared.checks import CheckClient, Checked, difference

Document = dict[str, Any]

CLASSES = {
    "claim.pdf": "claim",
    "contract.docx": "contract",
    "discharge.docx": "medical_report",
    "invoice-that-does-not-add-up.pdf": "invoice",
    "invoice.pdf": "invoice",
    "letter.txt": "letter",
    "message.eml": "letter",
}
FAILURES = {"cut-off.pdf": "TRUNCATED", "locked.pdf": "ENCRYPTED", "scan.pdf": "IMAGE_ONLY"}
FIELDS = {
    "invoice.pdf": {
        "invoice_number": "RE-2026-0417", "invoice_date": "2026-09-14", "due_date": "2026-09-28", "net": "5250.00",
        "tax": "997.50", "total": "6247.50", "iban": "DE46100500001234567890",
    },
    "discharge.docx": {"patient": "Georg Haberland", "birth_date": "1958-02-05", "insurance_number": "K509266137"},
    "claim.pdf": {"policy_number": "HH-3310-4472", "incident_date": "2026-10-22", "total": "2515.50"},
    "contract.docx": {"end_date": "2027-10-31"},
    "message.eml": {"sender": "Teresa Lindgren", "recipient": "Colin Baxter", "phone": "+442079460844"},
}  # fmt: skip
FINDINGS = {"total_is_not_the_sum", "iban_checksum"}


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait for the samples and check their results; then upload a document and process it twice."""
    samples = client.until(lambda: _finished_samples(client), "every sample has been processed")
    yield Checked(what=f"{len(samples)} samples have been processed")
    yield Checked(what="each sample has the right class", fault=difference(_classes(samples), CLASSES))
    yield Checked(what="samples that can't be read fail with a reason", fault=difference(_failures(samples), FAILURES))
    yield Checked(what="the right dates, amounts, people and numbers are found", fault=_fields(client, samples))
    yield Checked(what="the position of each field is exact", fault=_positions(client, samples))
    yield Checked(what="an invoice with a wrong total is reported", fault=_findings(client, samples))
    yield Checked(what="an uploaded document can be processed twice", fault=_again(client))


def _finished_samples(client: CheckClient) -> dict[str, Document] | None:
    """Return the samples by name, once all of their runs have ended."""
    documents = client.get("/documents")["documents"]
    samples = {document["name"]: document for document in documents if document["created_by"] == "samples"}
    if not samples.keys() >= CLASSES.keys() | FAILURES.keys():
        return None
    return None if any(document["state"] in ("QUEUED", "RUNNING") for document in samples.values()) else samples


def _classes(samples: dict[str, Document]) -> dict[str, str | None]:
    return {name: document["document_class"] for name, document in samples.items() if name not in FAILURES}


def _failures(samples: dict[str, Document]) -> dict[str, str | None]:
    return {name: samples[name]["failure_type"] for name in FAILURES}


def _fields(client: CheckClient, samples: dict[str, Document]) -> str | None:
    for name, expected in FIELDS.items():
        fields = client.get(f"/documents/{samples[name]['id']}")["fields"]
        values = {field["name"]: field["value"] for field in fields}
        if fault := difference({key: values.get(key) for key in expected}, expected):
            return f"{name}: {fault}"
    return None


def _positions(client: CheckClient, samples: dict[str, Document]) -> str | None:
    run = client.get(f"/documents/{samples['invoice.pdf']['id']}")["runs"][0]
    pages = client.get(f"/runs/{run['id']}/pages")
    for field in client.get(f"/runs/{run['id']}")["fields"]:
        if fault := difference(pages[field["page"] - 1][field["start"] : field["end"]], field["text"]):
            return fault
    return None


def _findings(client: CheckClient, samples: dict[str, Document]) -> str | None:
    result = client.get(f"/documents/{samples['invoice-that-does-not-add-up.pdf']['id']}")["result"]
    return difference({finding["code"] for finding in result["findings"]}, FINDINGS)


def _again(client: CheckClient) -> str | None:
    files = {
        "file": ("note.txt", b"Dear Mr Ferris,\n\nthe meeting is on 3 March 2027.\n\nYours sincerely,\n\nAnn Dale\n")
    }
    response = client.http.post("/documents", files=files)
    if response.status_code != 201:
        return f"the upload was answered with {response.status_code}: {response.text[:200]}"
    document = response.json()
    client.http.post(f"/documents/{document['id']}/runs").raise_for_status()
    runs = client.until(lambda: _finished_runs(client, document["id"]), "both runs of a new document have ended")
    states = [(run["number"], run["state"]) for run in runs]
    fields = client.get(f"/documents/{document['id']}")["fields"]
    dates = [field["value"] for field in fields if field["kind"] == "date"]
    return difference((states, dates), ([(2, "SUCCEEDED"), (1, "SUCCEEDED")], ["2027-03-03"]))


def _finished_runs(client: CheckClient, document_id: str) -> list[dict[str, Any]] | None:
    runs: list[dict[str, Any]] = client.get(f"/documents/{document_id}")["runs"]
    return None if any(run["finished_at"] is None for run in runs) else runs
