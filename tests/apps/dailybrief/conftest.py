"""Fixtures of the newsroom's domain: its tables on SQLite and PostgreSQL, without the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apps.dailybrief.newsroom import Newsroom


@pytest.fixture(params=["sqlite", "postgres"])
def newsroom(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Newsroom]:
    """A newsroom on each kind of database, with one feed and no article."""
    if request.param == "sqlite":
        found = Newsroom(f"sqlite:///{tmp_path / 'news.db'}")
        yield found
        found.close()
        return
    with request.getfixturevalue("schemas").lend(empty=True) as url:
        found = Newsroom(url)
        yield found
        found.close()
