"""Web: the site of the application. Its pages and API are at the root, the engine's below /holdfast.

holdfast serve apps.records.web:site --worker
"""

from __future__ import annotations

from pathlib import Path

from apps.records import document_routes, run_routes, samples
from apps.records.jobs import hf, settings
from apps.records.queries import database
from holdfast.web import Site

HERE = Path(__file__).parent

site = Site(
    hf,
    title="Records",
    templates=HERE / "templates",
    static=HERE / "static",
    links={"Documents": "records.documents"},
    at="/holdfast",
)
site.include(document_routes.router(site))
site.include(run_routes.router(site))


@site.on_start
def prepare() -> None:
    """Create the tables, and add the samples if the setting asks for them."""
    with database.read():
        pass
    if settings.samples:
        samples.add_all()
