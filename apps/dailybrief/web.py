"""k2dailybrief-web: `gunicorn -c python:apps.dailybrief.gunicorn_config` serves `app`.

It serves the pages, adds feeds and triggers slots by hand. It can't schedule: this process is declared as the web
service, and the worker refuses to start in it.
"""

from __future__ import annotations

from pathlib import Path

from apps.dailybrief import jobs, schedules, services
from apps.dailybrief.pages import brief, editions, events, feeds, job_runs, service
from holdfast.web import Site, create_app

HERE = Path(__file__).parent

services.declare(services.WEB)
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
job_names = tuple(schedule.name for schedule in schedules.job_schedules(jobs.settings))
site.include(job_runs.router(site, database=jobs.database, jobs=job_names))
site.include(service.router(site))

app = create_app(site, hosts=jobs.settings.allowed_hosts)
