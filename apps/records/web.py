"""Web: the site of the archive: its pages and its API at the root, the engine's below /holdfast.

holdfast serve apps.records.web:site --worker
"""

from __future__ import annotations

from pathlib import Path

from apps.records import document_routes, run_routes, samples
from apps.records.jobs import given, hf
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
    """Make the tables; hand in the samples where there is nothing yet."""
    with database.read():
        pass
    if given.samples:
        samples.hand_in()
