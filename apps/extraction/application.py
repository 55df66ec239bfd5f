"""Application: how `./run` starts, shows and checks the extraction application."""

from __future__ import annotations

from apps.extraction.check import check
from apps.shared.definition import Application, PageLink, Process, serve

application = Application(
    name="extraction",
    title="Extraction",
    shows="Reads PDFs in the background. Ask a question, and see the passages that answer it.",
    queues=("extraction",),
    processes=(
        serve("apps.extraction.web:site", "--log-level", "info", settings={"EXTRACTION_SAMPLES": "true"}),
        Process(
            name="worker",
            module="holdfast",
            arguments=("worker", "apps.extraction.jobs:hf", "-q", "extraction", "-c", "4"),
            ready=" started on ",
        ),
    ),
    page="/documents",
    links=(
        PageLink(what="Search: a question and the passages that answer it", path="/search?q=who+repairs+the+roof"),
        PageLink(what="Documents: the text of each one and its fields", path="/documents"),
        PageLink(what="Runs: the steps of each run and their stored results", path="/holdfast/runs"),
    ),
    check=check,
)
