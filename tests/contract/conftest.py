"""Depots, a folder and a real blob storage behind one name; and what else several files use."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import azurite
from tests.azurite import Azurite
from tests.contract.building import App
from tests.contract.scheduling import scheduled
from tests.contract.stage import Stage
from tests.mutants import statements

from holdfast import Holdfast, Pipeline
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

# A scenario that fails shows its values, as a test does.
pytest.register_assert_rewrite(*(f"tests.contract.{name}_scenarios" for name in ("key", "lease", "run")))

_numbers = itertools.count()


@pytest.fixture(scope="session")
def blob_storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    found = azurite.program()
    if found is None:
        pytest.skip("no Azurite: npm is not here or may not install it")
    with azurite.running(found, tmp_path_factory.mktemp("azurite")) as server:
        server.make_container("work")
        yield server


@pytest.fixture(params=["folder", "blobs"])
def kept_in(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where artifacts are kept: the setting."""
    if request.param == "folder":
        return str(tmp_path / "artifacts")
    for name, value in request.getfixturevalue("blob_storage").variables.items():
        monkeypatch.setenv(name, value)
    return f"az://work/test-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def keeping(url: str, clock: FakeClock, kept_in: str) -> Iterator[Holdfast]:
    """An engine on each kind of database with each kind of depot."""
    with Holdfast(url, clock=clock, ids=Ids(seed=1), artifacts=kept_in, max_artifact_bytes=3_000_000) as engine:
        yield engine


@pytest.fixture
def hands(keeping: Holdfast) -> Manual:
    return Manual(keeping)


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


@pytest.fixture
def double(hf: Holdfast) -> Any:
    """A job that doubles a number, and fails below zero."""

    @hf.job(name="double")
    def double(number: int) -> int:
        if number < 0:
            raise ValueError(f"{number} is below zero")
        return number * 2

    return double


@pytest.fixture
def dialect(url: str) -> str:
    """The dialect whose statements are broken on purpose."""
    return "sqlite" if url.startswith("sqlite") else "postgres"


@pytest.fixture
def stage_of(url: str, tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """A stage whose statements are as they are, or some of them replaced."""
    with contextlib.ExitStack() as opened:

        def make(replaced: dict[str, str] | None = None) -> Stage:
            clock = FakeClock()
            hf = opened.enter_context(Holdfast(url, clock=clock, ids=Ids(seed=1), artifacts=tmp_path / "artifacts"))
            statements.use(hf, replaced or {})
            return Stage(hf, clock, Manual(hf))

        yield make
