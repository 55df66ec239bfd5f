"""Web: the site of the application. Its pages and API are at the root, the engine's below /holdfast.

holdfast serve apps.extraction.web:site                   the site; add --worker to also process documents
holdfast worker apps.extraction.jobs:hf -q extraction     a worker in its own process
"""

from __future__ import annotations

from pathlib import Path

from apps.extraction import document_routes, samples, search_routes
from apps.extraction.jobs import database, hf, settings
from holdfast.web import Site

HERE = Path(__file__).parent

site = Site(
    hf,
    title="Extraction",
    templates=HERE / "templates",
    static=HERE / "static",
    links={"Documents": "extraction.documents", "Search": "extraction.search"},
    at="/holdfast",
)
site.include(document_routes.router(site))
site.include(search_routes.router(site))


@site.on_start
def prepare() -> None:
    """Create the tables, and add the samples if the setting asks for them."""
    with database.read():
        pass
    if settings.samples:
        samples.add_all()
