"""The definition of the daily brief for `./run`."""

from __future__ import annotations

from apps.dailybrief.check import check
from apps.shared.definition import Application, PageLink, Process

SAMPLES = "apps.dailybrief.samples"  # runs the module in its arguments with the sample settings

application = Application(
    name="dailybrief",
    title="Daily brief",
    shows="Reads news feeds every minute, groups the articles by event, and publishes a daily brief. Four scheduled "
    "jobs do the work, and each slot runs once.",
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
        PageLink(what="Brief: today's events, the most important first", path="/"),
        PageLink(what="Jobs: the schedules, and the outcome of every slot", path="/job-runs"),
        PageLink(what="Editions: the published briefs, which never change", path="/editions"),
        PageLink(what="Feeds: six sample newspapers; add a feed of your own", path="/feeds"),
    ),
    check=check,
)
