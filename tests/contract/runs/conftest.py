"""Jobs that the tests of runs share."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast


@pytest.fixture
def double(hf: Holdfast) -> Any:
    """A job that doubles a number, and fails below zero."""

    @hf.job(name="double")
    def double(number: int) -> int:
        if number < 0:
            raise ValueError(f"{number} is below zero")
        return number * 2

    return double
