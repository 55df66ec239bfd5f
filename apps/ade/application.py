"""Application definition of ade: how `./run` starts it, links to it and checks it."""

from __future__ import annotations

from apps.ade.check import check
from apps.shared.definition import Application, PageLink, Process, serve

application = Application(
    name="ade",
    title="ade",
    shows="Turns a messy spreadsheet into a normalised workbook, with Python rules that run in a shared environment.",
    queues=("ade", "ade.builds"),
    processes=(
        serve("apps.ade.web:site", "--worker", settings={"ADE_QUEUE_SIZE": "100"}),
        Process(name="samples", module="apps.ade.submit_samples"),
    ),
    page="/runs",
    links=(
        PageLink(what="See how messy spreadsheets were normalised", path="/runs"),
        PageLink(what="Edit the rules: the next run builds a new environment", path="/configurations"),
        PageLink(what="See the builds: one per fingerprint, shared by all its runs", path="/builds"),
        PageLink(what="Upload a spreadsheet of your own", path="/documents"),
    ),
    check=check,
)
