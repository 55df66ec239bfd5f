"""k2dailybrief-web: `gunicorn -c python:apps.dailybrief.gunicorn_config` serves `app`.

It shows the brief, takes in feeds and triggers slots by hand. It can't schedule: this process has declared itself the
web service, and the worker's code refuses to start in it.
"""

from __future__ import annotations

from pathlib import Path

from apps.dailybrief import engine, services, timetable
from apps.dailybrief.pages import brief, editions, events, feeds, jobs, service
from holdfast.web.asgi import create_app
from holdfast.web.site import Site

HERE = Path(__file__).parent

services.become(services.WEB)
engine.prepare()

site = Site(
    engine.hf,
    title="Daily brief",
    templates=HERE / "templates",
    static=HERE / "static",
    links={"Brief": "brief", "Editions": "editions", "Feeds": "feeds", "Jobs": "job_runs"},
    at="/holdfast",
)
site.include(brief.router(site, readers=engine.readers, settings=engine.settings))
site.include(events.router(site, readers=engine.readers))
site.include(editions.router(site, readers=engine.readers, settings=engine.settings))
site.include(feeds.router(site, writers=engine.writers, readers=engine.readers, settings=engine.settings))
jobs_by_name = tuple(planned.name for planned in timetable.plan(engine.settings))
site.include(jobs.router(site, readers=engine.readers, jobs=jobs_by_name))
site.include(service.router(site))

app = create_app(site, hosts=engine.settings.allowed_hosts)
