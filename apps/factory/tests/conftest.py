"""Fixtures of the factory's tests: installations on SQLite, and on PostgreSQL where it matters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from apps.factory.tests.instance import FactoryInstance


@pytest.fixture
def factory(tmp_path: Path) -> Iterator[FactoryInstance]:
    """An empty installation on SQLite."""
    with FactoryInstance(f"sqlite:///{tmp_path / 'work.db'}", tmp_path / "factory") as instance:
        yield instance


@pytest.fixture(params=["sqlite", "postgres"])
def each_factory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FactoryInstance]:
    """An installation on each kind of database."""
    file = f"sqlite:///{tmp_path / 'work.db'}"
    url = file if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with FactoryInstance(url, tmp_path / "factory") as instance:
        yield instance
