"""Changed schedules: earlier slots are still decided when an expression changes or its code is gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.contract.helpers.schedules import DAY, HOUR, QUARTER, START, OtherProcess, scheduled, slot_lines

from holdfast import Holdfast
from holdfast.testing import FakeClock, Manual


@pytest.mark.contract("J5")
def test_a_changed_expression_is_stored_and_older_code_does_not_change_it_back(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, "0 * * * *", overlap="wait")
    with OtherProcess(url, clock, when="30 * * * *") as newer:
        newer.keep(clock.now())
        assert hf.schedules.list()[0].trigger == "30 * * * * UTC"
        clock.advance(timedelta(minutes=30))
        assert (manual.schedule(), newer.keep(clock.now())) == (0, 1)
        clock.advance(timedelta(minutes=30))
        assert (manual.schedule(), newer.keep(clock.now())) == (0, 0)
    assert slot_lines(hf) == ["00:30 queued"]


@pytest.mark.contract("J5")
def test_a_changed_expression_applies_from_then_on(url: str, hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    """Slots before the change follow the old expression; the new expression creates no slots in the past."""
    scheduled(hf, manual, "0 3 * * *", catch_up="latest")
    clock.advance(3 * HOUR)
    manual.run_all()
    clock.advance(12 * HOUR)
    with OtherProcess(url, clock, when="0 6 * * *", catch_up="latest") as newer:
        assert newer.keep(clock.now()) == 0
        clock.advance(15 * HOUR)
        assert newer.keep(clock.now()) == 1
    assert slot_lines(hf) == ["03:00 ran", "06:00 queued"]
    clock.advance(DAY)
    with OtherProcess(url, clock, seed=8, when="0 9 * * *", catch_up="latest") as newest:
        assert newest.keep(clock.now()) == 1, "a slot of the previous expression came due while no process ran"
    assert slot_lines(hf) == ["03:00 ran", "06:00 queued", "06:00 queued"]


@pytest.mark.contract("J5", "S3")
def test_older_code_takes_over_when_the_newer_is_gone(url: str, hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    scheduled(hf, manual, "0 * * * *", overlap="wait")
    with OtherProcess(url, clock, when="30 * * * *") as newer:
        newer.keep(clock.now())
    clock.advance(HOUR)

    assert manual.schedule() == 1, "no process has evaluated the slot at 00:30, so the newer code is gone"
    assert slot_lines(hf) == ["01:00 queued"]


def test_a_schedule_without_code_is_kept_and_shows_when_it_was_last_declared(
    url: str, hf: Holdfast, manual: Manual, clock: FakeClock, ingest: Any
) -> None:
    clock.advance(QUARTER)
    manual.run_all()
    del hf.scheduled["ingest"]
    clock.advance(DAY)
    manual.run_all()
    [standing] = hf.schedules.list()
    assert (standing.last_seen_at, standing.last and standing.last.outcome) == (START + QUARTER, "ran")
    assert slot_lines(hf) == ["00:15 ran"]


def test_a_schedule_that_is_rarely_due_is_marked_as_seen_every_hour(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    scheduled(hf, manual, "0 0 1 1 *")
    clock.advance(HOUR)
    manual.schedule()
    assert hf.schedules.list()[0].last_seen_at == clock.now()
    assert hf.schedules.list()[0].evaluated_at == START
