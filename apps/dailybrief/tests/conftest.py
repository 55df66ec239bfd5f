"""Fixtures: the tables of the daily brief on SQLite and PostgreSQL, without the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from apps.dailybrief.tests.newsroom import Newsroom


@pytest.fixture(params=["sqlite", "postgres"])
def newsroom(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Newsroom]:
    """The tables on each kind of database, with one feed and no articles."""
    if request.param == "sqlite":
        found = Newsroom(f"sqlite:///{tmp_path / 'news.db'}")
        yield found
        found.close()
        return
    with request.getfixturevalue("schemas").lend(empty=True) as url:
        found = Newsroom(url)
        yield found
        found.close()
