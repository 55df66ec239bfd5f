"""The factory, as the system knows it."""

from __future__ import annotations

from apps.factory.check import check
from apps.shared.definition import Application, PageLink, Process, serve

JOBS = "apps.factory.jobs:hf"

application = Application(
    name="factory",
    title="Factory",
    shows="A script becomes a narrated video, segment by segment; kill its workers, and the video stays the same.",
    queues=("factory",),
    processes=(
        serve("apps.factory.web:site"),
        Process(name="orchestrator", module="holdfast", arguments=("orchestrator", JOBS), ready=" serves "),
        Process(name="workers", module="apps.factory.demo"),
    ),
    page="/videos/sample",
    links=(
        PageLink(what="A video of half a minute is made while you watch", path="/videos/sample"),
        PageLink(what="Kill a worker there: when its lease has ended, another takes over", path="/videos/sample"),
        PageLink(what="Edit a scene: only that one is spoken and drawn again", path="/videos/sample/edit"),
        PageLink(what="Every stage with its state and lease, as a view of the database", path="/jobs"),
    ),
    check=check,
)
