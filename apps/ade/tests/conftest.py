"""Fixtures of ade's tests: databases of each kind, and one service per module, because a service is slow to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from apps.ade.tests.ade_service import Service, stores
from tests.databases import Schemas, Template


@pytest.fixture(scope="module")
def ade_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ade")


@pytest.fixture(scope="module", params=stores(long="sqlite"))
def ade_url(request: pytest.FixtureRequest, ade_folder: Path) -> Iterator[str]:
    """A database of each kind, shared by the tests of a module."""
    yield from databases(request, ade_folder)


@pytest.fixture
def own_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database for one test, which chooses the kinds with `stores`."""
    yield from databases(request, tmp_path)


def databases(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    match request.param:
        case "sqlite":
            template: Template = request.getfixturevalue("template")
            yield template.copy(folder)
        case "postgres":
            # The schema is not reused, because ade creates tables of its own in it.
            schemas: Schemas = request.getfixturevalue("schemas")
            with schemas.lend() as url:
                yield url
        case _:
            if "HOLDFAST_TEST_SQLSERVER" not in os.environ:
                pytest.skip("no SQL Server: HOLDFAST_TEST_SQLSERVER is not set")
            yield os.environ["HOLDFAST_TEST_SQLSERVER"]


@pytest.fixture(scope="module")
def ade(ade_url: str, ade_folder: Path) -> Iterator[Service]:
    """A service that executes two runs at once, with short timeouts."""
    with Service(ade_url, ade_folder / "one", ade_run_timeout_seconds=60, ade_build_timeout=60) as started:
        yield started
