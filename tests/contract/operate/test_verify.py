"""Verify: rows that contradict each other are found and named."""

from __future__ import annotations

from typing import Any

from holdfast import Holdfast


def test_verify_finds_a_waiting_run_that_no_orchestrator_would_check(hf: Holdfast, database: Any) -> None:
    @hf.job(name="late")
    def late() -> None: ...

    run = late.using(delay=3600).submit()
    database.run("update holdfast_waits set due_at = null, unchecked = 0")
    assert [(found.problem, found.run_id) for found in hf.verify()] == [("wait_forgotten", run.id)]
