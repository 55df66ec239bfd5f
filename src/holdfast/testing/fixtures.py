"""Fixtures for pytest, which finds them once Holdfast is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.clock import FakeClock


@pytest.fixture
def holdfast_clock() -> FakeClock:
    """A clock that stands still until the test advances it: `Holdfast(holdfast_url, clock=holdfast_clock)`."""
    return FakeClock()


@pytest.fixture
def holdfast_url(tmp_path: Path) -> str:
    """A fresh SQLite database."""
    return f"sqlite:///{tmp_path / 'holdfast.db'}"
