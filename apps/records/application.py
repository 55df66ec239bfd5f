"""Application: how `./run` starts, shows and checks the records application."""

from __future__ import annotations

from apps.records.check import check
from apps.shared.definition import Application, PageLink, serve

application = Application(
    name="records",
    title="Records",
    shows="Documents become data in one process: upload a PDF, DOCX, EML or text file and see the fields found in it.",
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
