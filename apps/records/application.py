"""Application: how `./run` starts, shows and checks the records application."""

from __future__ import annotations

from apps.records.check import check
from apps.shared.definition import Application, PageLink, serve

application = Application(
    name="records",
    title="Records",
    shows="Turns documents into data, in one process. Upload a PDF, DOCX, EML or text file to see its fields.",
    queues=("records", "records.upkeep"),
    processes=(
        serve("apps.records.web:site", "--worker", "--log-level", "info", settings={"RECORDS_SAMPLES": "true"}),
    ),
    page="/documents",
    links=(
        PageLink(
            what="Documents: the text of each one, the fields found in it, and the steps of its run", path="/documents"
        ),
        PageLink(
            what="Runs: the same runs on the engine's dashboard, with their leases and events", path="/holdfast/runs"
        ),
    ),
    check=check,
)
