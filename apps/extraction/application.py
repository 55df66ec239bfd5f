"""Extraction, as the system knows it."""

from __future__ import annotations

from apps.extraction.check import check
from apps.shared.definition import Application, PageLink, Process, serve

application = Application(
    name="extraction",
    title="Extraction",
    shows="PDFs become fields and vectors in the background; ask a question and see the passage that answers it.",
    queues=("extraction",),
    processes=(
        serve("apps.extraction.web:site", "--log-level", "info", settings={"EXTRACTION_SAMPLES": "true"}),
        Process(
            name="worker",
            module="holdfast",
            arguments=("worker", "apps.extraction.jobs:hf", "-q", "extraction", "-c", "4"),
            ready=" serves ",
        ),
    ),
    page="/documents",
    links=(
        PageLink(what="A question, and the passage that answers it", path="/search?q=who+repairs+the+roof"),
        PageLink(what="A document's text with its fields", path="/documents"),
        PageLink(what="What each run remembers, step by step", path="/holdfast/runs"),
    ),
    check=check,
)
