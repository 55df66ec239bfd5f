"""ade, as the system knows it."""

from __future__ import annotations

from apps.ade.check import check
from apps.shared.definition import Application, PageLink, Process, serve

application = Application(
    name="ade",
    title="ade",
    shows="Messy spreadsheets become one normalised workbook, by rules in Python, each in an environment built once.",
    queues=("ade", "ade.builds"),
    processes=(
        serve("apps.ade.web:site", "--worker", settings={"ADE_QUEUE_SIZE": "100"}),
        Process(name="samples", module="apps.ade.submit_samples"),
    ),
    page="/runs",
    links=(
        PageLink(what="Spreadsheets as people really send them, and what comes of them", path="/runs"),
        PageLink(what="Rules to change: save them, and the next run has an environment built", path="/configurations"),
        PageLink(what="One build for each fingerprint, however many runs want it", path="/builds"),
        PageLink(what="Upload one of your own", path="/documents"),
    ),
    check=check,
)
