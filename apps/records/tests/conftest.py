"""Fixtures: one server for all tests that do not kill or block it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from apps.records.tests.records_server import RecordsServer

SETTINGS: dict[str, Any] = {"records_step_pause": 2, "records_max_bytes": 3_000_000}


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordsServer]:
    with RecordsServer(tmp_path_factory.mktemp("records"), holdfast_busy_timeout=1, **SETTINGS) as running:
        yield running
