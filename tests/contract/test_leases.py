"""Claims, renewals and finishes: who has a run, and who has it no more."""

from __future__ import annotations

import pytest

from holdfast import Holdfast, LeaseLost
from holdfast.outcomes import Succeeded
from holdfast.testing import FakeClock, Manual


@pytest.mark.contract("L5", "Q12")
def test_a_stale_holder_cannot_finish_a_run_someone_else_has_claimed(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    @hf.job(name="work")
    def work() -> str:
        return "done"

    run = work.submit()
    stale = manual.worker("a")
    [lost] = stale.claim()
    clock.advance(2 * hf.settings.lease)
    manual.orchestrate()
    fresh = manual.worker("b")
    [held] = fresh.claim()

    with pytest.raises(LeaseLost):
        stale.finish(lost, Succeeded('"stale"'))
    fresh.finish(held, Succeeded('"fresh"'))

    assert run.result(timeout=1) == "fresh"
    assert hf.verify() == []
