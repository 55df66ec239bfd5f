"""The tour, as the system knows it."""

from __future__ import annotations

from apps.application import Application, Process
from apps.tour.check import check

application = Application(
    name="tour",
    title="Tour",
    shows="A little of everything: keys, builds, pipelines, schedules, retries, full queues, files, children.",
    jobs="apps.tour.jobs",
    queues=("tour", "tour.letters"),
    processes=(Process(name="visitors", module="apps.tour.visitors"),),
    page="/",
    check=check,
)
