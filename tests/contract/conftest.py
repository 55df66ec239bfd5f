"""Fixtures that the contract tests share: artifact stores, sample jobs and pipelines."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import azurite
from tests.azurite import Azurite
from tests.contract.helpers.builds import App
from tests.contract.helpers.schedules import scheduled

from holdfast import Holdfast, Pipeline
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

_numbers = itertools.count()


@pytest.fixture(scope="session")
def blob_storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    found = azurite.program()
    if found is None:
        pytest.skip("no Azurite: it could not be installed here")
    with azurite.running(found, tmp_path_factory.mktemp("azurite")) as server:
        server.make_container("work")
        yield server


@pytest.fixture(params=["folder", "blobs"])
def artifact_location(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The setting `artifacts`: a folder or a blob container."""
    if request.param == "folder":
        return str(tmp_path / "artifacts")
    for name, value in request.getfixturevalue("blob_storage").variables.items():
        monkeypatch.setenv(name, value)
    return f"az://work/test-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def artifact_hf(url: str, clock: FakeClock, artifact_location: str) -> Iterator[Holdfast]:
    """A Holdfast on each kind of database with each kind of artifact store."""
    with Holdfast(
        url, clock=clock, ids=Ids(seed=1), artifacts=artifact_location, max_artifact_bytes=3_000_000
    ) as engine:
        yield engine


@pytest.fixture
def artifact_manual(artifact_hf: Holdfast) -> Manual:
    return Manual(artifact_hf)


@pytest.fixture
def ingest(hf: Holdfast, manual: Manual) -> Any:
    """A job with a slot every quarter of an hour."""
    return scheduled(hf, manual)


@pytest.fixture
def work(hf: Holdfast) -> Any:
    """A job that does nothing."""

    @hf.job(name="work")
    def work() -> None: ...

    return work


@pytest.fixture
def app(hf: Holdfast) -> App:
    """A build and a job that uses it."""
    return App(hf)


@pytest.fixture
def diamond(hf: Holdfast) -> Pipeline:
    """a → b, c → d."""
    pipeline = hf.pipeline("diamond")

    @pipeline.stage()
    def a(number: int) -> int:
        return number + 1

    @pipeline.stage(after=a)
    def b(a: int, fail: bool = False) -> int:
        if fail:
            raise ValueError("b can't")
        return a * 10

    @pipeline.stage(after=a)
    def c(a: int) -> int:
        return a * 100

    @pipeline.stage(after=[b, c])
    def d(b: int, c: int, number: int) -> list[int]:
        return [number, b, c]

    return pipeline
