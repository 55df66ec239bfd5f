"""k2dailybrief-web: `gunicorn -c python:apps.dailybrief.gunicorn_config` serves `app`.

It shows the brief, takes in feeds and triggers slots by hand. It can't schedule: this process has declared itself the
web service, and the worker's code refuses to start in it.
"""

from __future__ import annotations

from pathlib import Path

from apps.dailybrief import jobs, schedules, services
from apps.dailybrief.pages import brief, editions, events, feeds, job_runs, service
from holdfast.web import Site, create_app

HERE = Path(__file__).parent

services.become(services.WEB)
jobs.prepare()

site = Site(
    jobs.hf,
    title="Daily brief",
    templates=HERE / "templates",
    static=HERE / "static",
    links={"Brief": "brief", "Editions": "editions", "Feeds": "feeds", "Jobs": "job_runs"},
    at="/holdfast",
)
site.include(brief.router(site, database=jobs.database, settings=jobs.settings))
site.include(events.router(site, database=jobs.database))
site.include(editions.router(site, database=jobs.database, settings=jobs.settings))
site.include(feeds.router(site, database=jobs.database, settings=jobs.settings))
jobs_by_name = tuple(planned.name for planned in schedules.plan(jobs.settings))
site.include(job_runs.router(site, database=jobs.database, jobs=jobs_by_name))
site.include(service.router(site))

app = create_app(site, hosts=jobs.settings.allowed_hosts)
