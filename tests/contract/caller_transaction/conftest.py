"""A store with a job, for each way to submit in a caller's transaction; tests have the parameter `way`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.caller_transaction.callers import joined

from holdfast import Holdfast
from holdfast.jobs.job import Job


@pytest.fixture
def hf(request: pytest.FixtureRequest, way: str, tmp_path: Path) -> Iterator[Holdfast]:
    with joined(request, way, tmp_path) as engine:
        yield engine


@pytest.fixture
def url(hf: Holdfast) -> str:
    return hf.settings.url


@pytest.fixture
def job(hf: Holdfast) -> Job[[str], str]:
    @hf.job(name="work")
    def work(name: str) -> str:
        return name

    hf.start()
    return work
