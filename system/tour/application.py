"""The definition of the tour for `./run`."""

from __future__ import annotations

from apps.shared.definition import Application, PageLink, Process

from system.tour.check import check

application = Application(
    name="tour",
    title="Tour",
    shows="Submits small jobs that show each feature of Holdfast in the dashboard: retries, keys, builds, pipelines, "
    "schedules, bounded queues, artifacts and child runs.",
    jobs="system.tour.jobs",
    queues=("tour", "tour.notifications"),
    processes=(Process(name="submitter", module="system.tour.submitter"),),
    page="/",
    links=(
        PageLink(what="Keys: three runs that index one document run one at a time", path="/keys"),
        PageLink(what="Builds: three reports wait for one dataset, which is built once", path="/builds"),
        PageLink(what="Pipelines: a video is encoded in three segments, and one is retried", path="/pipelines"),
        PageLink(what="Schedules: a slot is due every ten seconds, and each slot runs once", path="/schedules"),
        PageLink(what="Queues: a bounded queue accepts three of five notifications", path="/queues"),
        PageLink(what="Failures: a feed import that always fails", path="/runs?state=failed"),
    ),
    check=check,
)
