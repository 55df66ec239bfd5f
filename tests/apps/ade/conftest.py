"""Databases of each kind for whole modules: a service is slow to start, so its tests share one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.apps.ade.ade_service import Service, stores
from tests.databases import Schemas, Template


@pytest.fixture(scope="module")
def ade_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ade")


@pytest.fixture(scope="module", params=stores(long="sqlite"))
def ade_url(request: pytest.FixtureRequest, ade_folder: Path) -> Iterator[str]:
    """A database of each kind, for the tests of a module together."""
    yield from databases(request, ade_folder)


@pytest.fixture
def own_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The same for one test alone, which says by `stores` where it runs."""
    yield from databases(request, tmp_path)


def databases(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    match request.param:
        case "sqlite":
            template: Template = request.getfixturevalue("template")
            yield template.copy(folder)
        case "postgres":
            # With tables of ade's own it is not lent again.
            schemas: Schemas = request.getfixturevalue("schemas")
            with schemas.lend() as url:
                yield url
        case _:
            if "HOLDFAST_TEST_SQLSERVER" not in os.environ:
                pytest.skip("no SQL Server: HOLDFAST_TEST_SQLSERVER is not set")
            yield os.environ["HOLDFAST_TEST_SQLSERVER"]


@pytest.fixture(scope="module")
def ade(ade_url: str, ade_folder: Path) -> Iterator[Service]:
    """A service that runs two at once, with short patience."""
    with Service(ade_url, ade_folder / "one", ade_run_timeout_seconds=60, ade_build_timeout=60) as started:
        yield started
