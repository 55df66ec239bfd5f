"""Web: the site of extraction: its pages and its API at the root, the engine's below /holdfast.

holdfast serve apps.extraction.web:site              the site alone; with --worker it reads documents, too
holdfast worker apps.extraction.jobs:hf -q extraction
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
    """Make the tables before someone asks for them; take the samples in, where they are wanted."""
    with database.read():
        pass
    if settings.samples:
        samples.take()
