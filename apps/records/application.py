"""The archive of records, as the system knows it."""

from __future__ import annotations

from apps.records.check import check
from apps.shared.definition import Application, PageLink, serve

application = Application(
    name="records",
    title="Records",
    shows="Documents become data inside one process: drop a PDF, DOCX, EML or text and see what is found in it.",
    queues=("records", "records.upkeep"),
    processes=(
        serve("apps.records.web:site", "--worker", "--log-level", "info", settings={"RECORDS_SAMPLES": "true"}),
    ),
    page="/documents",
    links=(
        PageLink(what="A document's text with the fields found in it, and the steps of its run", path="/documents"),
        PageLink(what="Each run as the engine sees it: who holds it, and until when", path="/holdfast/runs"),
    ),
    check=check,
)
