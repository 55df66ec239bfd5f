"""Plants: on SQLite, and on PostgreSQL where that matters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apps.factory.plant import Plant


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Plant]:
    """A plant on SQLite with nothing in it."""
    with Plant(f"sqlite:///{tmp_path / 'work.db'}", tmp_path / "plant") as built:
        yield built


@pytest.fixture(params=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Plant]:
    """A plant on each kind of database."""
    file = f"sqlite:///{tmp_path / 'work.db'}"
    url = file if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    with Plant(url, tmp_path / "plant") as built:
        yield built
