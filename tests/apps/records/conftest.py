"""One archive for all tests that do it no harm, and one that times out soon, for those that do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.apps.records.serving import Served

SETTINGS: dict[str, Any] = {"records_step_pause": 2, "records_max_bytes": 3_000_000}


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("records of all"), holdfast_busy_timeout=1, **SETTINGS) as found:
        yield found
