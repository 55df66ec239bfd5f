"""Fixtures that start real worker processes and import the modules of jobs that the tests share with them."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.databases import new_name
from tests.postgres import PostgresServer
from tests.process.django_project import Project
from tests.process.support import PROGRAMS, WorkerProcess, descendants, is_a_run


@pytest.fixture
def start_worker(tmp_path: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """Start a worker process for the `hf` of a module; it is killed at the end of the test."""
    started: list[WorkerProcess] = []

    def start(module: str, *options: str) -> WorkerProcess:
        worker = WorkerProcess(module, *options, log=tmp_path / "workers.log")
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.end()


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Import a module of jobs anew with this database; processes that the test starts get the same settings."""
    loaded: list[Any] = []
    monkeypatch.setenv("HOLDFAST_ARTIFACTS", str(tmp_path / "artifacts"))
    monkeypatch.setenv("TEST_MARKS", str(tmp_path))
    monkeypatch.syspath_prepend(PROGRAMS)

    def load(name: str, url: str, **environment: Any) -> Any:
        monkeypatch.setenv("HOLDFAST_URL", url)
        for variable, value in environment.items():
            monkeypatch.setenv(variable, str(value))
        sys.modules.pop(name, None)
        loaded.append(importlib.import_module(name))
        return loaded[-1]

    yield load
    for module in loaded:
        module.hf.close()
        sys.modules.pop(module.__name__, None)


@pytest.fixture
def app(load: Callable[..., Any], sqlite_url: str) -> Any:
    """The module `isolated_jobs` on SQLite."""
    return load("isolated_jobs", sqlite_url)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Check that no process of a run outlives its test."""
    yield
    left = [pid for pid in descendants(os.getpid()) if is_a_run(pid)]
    assert not left, f"processes left behind: {left}"


@pytest.fixture(scope="session")
def django_template(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("django"), "")
    project.make()
    return project


@pytest.fixture(params=["sqlite", "postgres"])
def project(request: pytest.FixtureRequest, django_template: Project, tmp_path: Path) -> Iterator[Project]:
    """The migrated Django project of the guide, on each database."""
    with _django_database(request, tmp_path) as url:
        project = django_template.copied_to(tmp_path / "project", url)
        project.manage("migrate")
        yield project


@contextlib.contextmanager
def _django_database(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{folder / 'project' / 'db.sqlite3'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    name = new_name().replace("test_", "shop_")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        yield server.url_of(name)
        connection.execute(f"drop database {name} with (force)")
