"""Patience: ways to wait for real workers, each with an end; and for a deadline."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from holdfast import Run, RunFailed, Snapshot
from holdfast.runs.claim import Claim
from holdfast.testing import FakeClock, ManualWorker

PATIENCE = 60.0


def until(what: Callable[[], Any], *, patience: float = PATIENCE) -> Any:
    """Wait until something is so, and say what it is."""
    give_up_at = time.monotonic() + patience
    while not (found := what()):
        assert time.monotonic() < give_up_at, "it did not happen in time"
        time.sleep(0.01)
    return found


def hold_past_the_deadline(worker: ManualWorker, claim: Claim, clock: FakeClock) -> None:
    """Renew a lease at its run's deadline; then let the worker be silent for an hour."""
    assert claim.lease.deadline_at is not None
    clock.advance(claim.lease.deadline_at - clock.now())
    worker.renew(claim)
    clock.advance(timedelta(hours=1))


def ended(run: Run[Any]) -> Snapshot:
    with contextlib.suppress(RunFailed):
        run.result(timeout=PATIENCE)
    return run.snapshot
