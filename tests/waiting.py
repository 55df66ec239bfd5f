"""Wait for a condition, with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

LONGEST_PAUSE = 0.1


def wait_for(condition: Callable[[], Any], what: str = "", *, at_most: float = 150.0, every: float = 0.02) -> Any:
    """Return the first true value of the condition; fail after `at_most` seconds.

    The pauses grow, up to LONGEST_PAUSE, so that the processes under test get the CPU.
    """
    began = now = time.monotonic()
    while now < began + at_most:
        if value := condition():
            return value
        time.sleep(max(every, min((now - began) / 10, LONGEST_PAUSE)))
        now = time.monotonic()
    raise AssertionError(f"not within {at_most} s: {what or condition}")
