"""The tour, as the system knows it."""

from __future__ import annotations

from apps.shared.definition import Application, PageLink, Process

from system.tour.check import check

application = Application(
    name="tour",
    title="Tour",
    shows="A little of everything: keys, builds, pipelines, schedules, retries, full queues, files, children.",
    jobs="system.tour.jobs",
    queues=("tour", "tour.letters"),
    processes=(Process(name="submitter", module="system.tour.submitter"),),
    page="/",
    links=(
        PageLink(what="Three runs want one key: they take turns", path="/keys"),
        PageLink(what="Three posters wait for one press, which is made once", path="/builds"),
        PageLink(what="A film falls into segments; one is tried again", path="/pipelines"),
        PageLink(what="A slot every ten seconds, each run once", path="/schedules"),
        PageLink(what="A queue that takes three of five letters", path="/queues"),
        PageLink(what="What fails, on purpose, and why", path="/runs?state=failed"),
    ),
    check=check,
)
