"""Wait for the outcome of a run, or past its deadline."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

from holdfast import Run, RunFailed, Snapshot
from holdfast.runs.claim import ClaimedRun
from holdfast.testing import FakeClock, ManualWorker

PATIENCE = 60.0


def hold_past_the_deadline(worker: ManualWorker, claim: ClaimedRun, clock: FakeClock) -> None:
    """Renew a lease at its run's deadline; then let an hour pass without another renewal."""
    assert claim.lease.deadline_at is not None
    clock.advance(claim.lease.deadline_at - clock.now())
    worker.renew(claim)
    clock.advance(timedelta(hours=1))


def ended(run: Run[Any]) -> Snapshot:
    with contextlib.suppress(RunFailed):
        run.result(timeout=PATIENCE)
    return run.snapshot
