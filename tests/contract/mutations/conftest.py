"""Setups for scenarios, whose statements may be broken on purpose."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contract.mutations.scenario_setup import ScenarioSetup
from tests.mutants import statements

from holdfast import Holdfast
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

# A failed assertion in a scenario shows its values, like one in a test.
pytest.register_assert_rewrite(*(f"tests.contract.mutations.{name}_scenarios" for name in ("key", "lease", "run")))


@pytest.fixture
def dialect(url: str) -> str:
    """The dialect whose statements are broken on purpose."""
    return "sqlite" if url.startswith("sqlite") else "postgres"


@pytest.fixture
def make_setup(url: str, tmp_path: Path) -> Iterator[Callable[..., ScenarioSetup]]:
    """Make a setup whose statements are unchanged, or some of them replaced."""
    with contextlib.ExitStack() as opened:

        def make(replaced: dict[str, str] | None = None) -> ScenarioSetup:
            clock = FakeClock()
            hf = opened.enter_context(Holdfast(url, clock=clock, ids=Ids(seed=1), artifacts=tmp_path / "artifacts"))
            statements.use(hf, replaced or {})
            return ScenarioSetup(hf, clock, Manual(hf))

        yield make
