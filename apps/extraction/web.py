"""Web: the site of extraction: its pages and its API at the root, the engine's below /holdfast.

holdfast serve apps.extraction.web:site              the site alone; with --worker it reads documents, too
holdfast worker apps.extraction.engine:hf -q extraction
"""

from __future__ import annotations

from pathlib import Path

from apps.extraction import documents, finding, samples
from apps.extraction.engine import database, hf, settings
from holdfast.web.site import Site

HERE = Path(__file__).parent

site = Site(
    hf,
    title="Extraction",
    templates=HERE / "templates",
    static=HERE / "static",
    links={"Documents": "extraction.documents", "Search": "extraction.search"},
    at="/holdfast",
)
site.include(documents.router(site))
site.include(finding.router(site))


@site.on_start
def prepare() -> None:
    """Make the tables before someone asks for them; take the samples in, where they are wanted."""
    with database.read():
        pass
    if settings.samples:
        samples.take()
