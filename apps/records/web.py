"""Web: the site of the archive: its pages and its API at the root, the engine's below /holdfast.

holdfast serve apps.records.web:site --worker
"""

from __future__ import annotations

from pathlib import Path

from apps.records import documents, runs, samples
from apps.records.archive import database
from apps.records.engine import given, hf
from holdfast.web.site import Site

HERE = Path(__file__).parent

site = Site(
    hf,
    title="Records",
    templates=HERE / "templates",
    static=HERE / "static",
    links={"Documents": "records.documents"},
    at="/holdfast",
)
site.include(documents.router(site))
site.include(runs.router(site))


@site.on_start
def prepare() -> None:
    """Make the tables; hand in the samples where there is nothing yet."""
    with database.read():
        pass
    if given.samples:
        samples.hand_in()
