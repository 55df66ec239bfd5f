"""Checks of the archive: that the samples were processed, and that what was found in them is what they say."""

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
WRONG = {"total_is_not_the_sum", "iban_checksum"}


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait for the samples, look at what came of them, hand one in as anyone would, and have it processed again."""
    found = client.until(lambda: _ended(client), "every sample has been processed")
    yield Checked(what=f"{len(found)} samples have been processed")
    yield Checked(what="each was recognised for what it is", fault=difference(_classes(found), CLASSES))
    yield Checked(what="those that can't be read say why", fault=difference(_failures(found), FAILURES))
    yield Checked(what="dates, sums, people and numbers are what the documents say", fault=_fields(client, found))
    yield Checked(what="every field stands where it says, to the character", fault=_places(client, found))
    yield Checked(what="an invoice with a wrong total is reported", fault=_findings(client, found))
    yield Checked(what="a document handed in now is processed, and again", fault=_again(client))


def _ended(client: CheckClient) -> dict[str, Document] | None:
    """The samples by their names, once all have ended."""
    documents = client.get("/documents")["documents"]
    found = {one["name"]: one for one in documents if one["created_by"] == "samples"}
    if not found.keys() >= CLASSES.keys() | FAILURES.keys():
        return None
    return None if any(one["state"] in ("QUEUED", "RUNNING") for one in found.values()) else found


def _classes(found: dict[str, Document]) -> dict[str, str | None]:
    return {name: one["document_class"] for name, one in found.items() if name not in FAILURES}


def _failures(found: dict[str, Document]) -> dict[str, str | None]:
    return {name: found[name]["failure_type"] for name in FAILURES}


def _fields(client: CheckClient, found: dict[str, Document]) -> str | None:
    for name, expected in FIELDS.items():
        fields = client.get(f"/documents/{found[name]['id']}")["fields"]
        values = {field["name"]: field["value"] for field in fields}
        if fault := difference({key: values.get(key) for key in expected}, expected):
            return f"{name}: {fault}"
    return None


def _places(client: CheckClient, found: dict[str, Document]) -> str | None:
    run = client.get(f"/documents/{found['invoice.pdf']['id']}")["runs"][0]
    pages = client.get(f"/runs/{run['id']}/pages")
    for field in client.get(f"/runs/{run['id']}")["fields"]:
        if fault := difference(pages[field["page"] - 1][field["start"] : field["end"]], field["text"]):
            return fault
    return None


def _findings(client: CheckClient, found: dict[str, Document]) -> str | None:
    result = client.get(f"/documents/{found['invoice-that-does-not-add-up.pdf']['id']}")["result"]
    return difference({finding["code"] for finding in result["findings"]}, WRONG)


def _again(client: CheckClient) -> str | None:
    sent = {
        "file": ("note.txt", b"Dear Mr Ferris,\n\nthe meeting is on 3 March 2027.\n\nYours sincerely,\n\nAnn Dale\n")
    }
    answer = client.http.post("/documents", files=sent)
    if answer.status_code != 201:
        return f"it was answered with {answer.status_code}: {answer.text[:200]}"
    document = answer.json()
    client.http.post(f"/documents/{document['id']}/runs").raise_for_status()
    runs = client.until(lambda: _both(client, document["id"]), "both runs of a new document have ended")
    states = [(run["number"], run["state"]) for run in runs]
    fields = client.get(f"/documents/{document['id']}")["fields"]
    dates = [field["value"] for field in fields if field["kind"] == "date"]
    return difference((states, dates), ([(2, "SUCCEEDED"), (1, "SUCCEEDED")], ["2027-03-03"]))


def _both(client: CheckClient, document_id: str) -> list[dict[str, Any]] | None:
    runs: list[dict[str, Any]] = client.get(f"/documents/{document_id}")["runs"]
    return None if any(run["finished_at"] is None for run in runs) else runs
