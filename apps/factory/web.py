"""Web: the factory's pages and API, served by `holdfast serve apps.factory.web:site`. Workers make the videos."""

from __future__ import annotations

from pathlib import Path

from apps.factory import media_routes, tables, video_routes, worker_routes
from apps.factory.jobs import hf
from holdfast.web import Site

HERE = Path(__file__).parent

tables.prepare()
site = Site(
    hf,
    title="Factory",
    templates=HERE / "templates",
    static=HERE / "static",
    links={"Videos": "factory.videos", "Jobs": "factory.jobs"},
    at="/holdfast",
)
site.include(video_routes.router(site))
site.include(media_routes.router(site))
site.include(worker_routes.router(site))
