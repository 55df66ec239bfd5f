"""Patience: ways to wait for real workers, each with an end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

from holdfast import Run, RunFailed, Snapshot

PATIENCE = 40.0


def until(what: Callable[[], Any], *, patience: float = PATIENCE) -> Any:
    """Wait until something is so, and say what it is."""
    give_up_at = time.monotonic() + patience
    while not (found := what()):
        assert time.monotonic() < give_up_at, "it did not happen in time"
        time.sleep(0.01)
    return found


def ended(run: Run[Any]) -> Snapshot:
    with contextlib.suppress(RunFailed):
        run.result(timeout=PATIENCE)
    return run.snapshot
