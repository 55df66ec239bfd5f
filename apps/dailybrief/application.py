"""The daily brief, as the system knows it."""

from __future__ import annotations

from apps.dailybrief.check import check
from apps.shared.definition import Application, PageLink, Process

SAMPLES = "apps.dailybrief.samples"  # runs what follows with the settings of the samples

application = Application(
    name="dailybrief",
    title="Daily brief",
    shows="Feeds are read all day, articles grouped into events, and the brief of the day published, each slot once.",
    queues=("dailybrief",),
    processes=(
        Process(
            name="web",
            module=SAMPLES,
            arguments=("gunicorn", "-c", "python:apps.dailybrief.gunicorn_config", "--bind", "fd://{fd}"),
            listens=True,
            ready="/healthz",
        ),
        Process(name="worker", module=SAMPLES, arguments=("apps.dailybrief.worker",), ready="worker_ready"),
        Process(name="feeds", module=SAMPLES, arguments=("apps.dailybrief.samples.server",)),
    ),
    page="/",
    links=(
        PageLink(what="Today's events, by how many sources report them", path="/"),
        PageLink(what="Every slot and what became of it: the table job_runs", path="/job-runs"),
        PageLink(what="The edition of the day, which nothing changes any more", path="/editions"),
        PageLink(what="The feeds, six newspapers that do not exist", path="/feeds"),
    ),
    check=check,
)
