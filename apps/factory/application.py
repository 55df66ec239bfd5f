"""Application definition of the factory: how `./run` starts it, links to it and checks it."""

from __future__ import annotations

from apps.factory.check import check
from apps.shared.definition import Application, PageLink, Process, serve

JOBS = "apps.factory.jobs:hf"

application = Application(
    name="factory",
    title="Factory",
    shows="Turns a script into a narrated video, segment by segment; killed workers don't change the result.",
    queues=("factory",),
    processes=(
        serve("apps.factory.web:site"),
        Process(name="orchestrator", module="holdfast", arguments=("orchestrator", JOBS), ready=" started on "),
        Process(name="workers", module="apps.factory.demo"),
    ),
    page="/videos/sample",
    links=(
        PageLink(what="Watch a video of half a minute being made", path="/videos/sample"),
        PageLink(what="Kill a worker: another takes over when the lease expires", path="/videos/sample"),
        PageLink(what="Edit a scene: only that scene is spoken and drawn again", path="/videos/sample/edit"),
        PageLink(what="See every stage with its state and lease, as a database view", path="/jobs"),
    ),
    check=check,
)
