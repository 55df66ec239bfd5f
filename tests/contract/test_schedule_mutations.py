"""Break the statements of schedules on purpose: a scenario that passes must fail."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from tests.contract.scheduling import QUARTER, START, one_of_eight_hands, scheduled
from tests.contract.stage import Stage
from tests.databases import sqlite
from tests.listing import runs_of
from tests.mutants.statements import Mutant, Scenario, each_mutant, each_scenario, on_both

from holdfast import SlotTaken


def a_taken_slot_is_refused(on: Stage) -> None:
    hf, manual = on.hf, on.manual
    scheduled(hf, manual, overlap="wait")
    hf.schedules.trigger("ingest", scheduled_for=START)
    with pytest.raises(SlotTaken):
        hf.schedules.trigger("ingest", scheduled_for=START)


def eight_hands_get_one_run_past_the_overlap_policy(on: Stage) -> None:
    hf, manual = on.hf, on.manual
    scheduled(hf, manual)
    for _ in range(10):  # a race: without the lock it is lost within a few rounds
        assert one_of_eight_hands(hf) == 1
        for run in runs_of(hf, state="queued"):
            hf.cancel(run.id)
        manual.orchestrate()
        hf.do(lambda tx: tx.put("delete_slots_of", ids=[run.id for run in runs_of(hf)]))


def a_running_run_is_in_the_way(on: Stage) -> None:
    hf, manual, clock = on.hf, on.manual, on.clock
    scheduled(hf, manual, max_runtime=7200)
    clock.advance(QUARTER)
    manual.schedule()
    manual.worker().claim()
    clock.advance(QUARTER)
    manual.schedule()
    assert [slot.outcome for slot in hf.schedules.slots("ingest", next=0)] == ["running", "skipped"]


def a_run_that_waits_is_in_the_way(on: Stage) -> None:
    hf, manual, clock = on.hf, on.manual, on.clock
    scheduled(hf, manual, jitter=7200)
    known = hf.scheduled["ingest"]
    while known.starts_at(clock.now() + QUARTER) <= clock.now() + 2 * QUARTER:
        clock.advance(QUARTER)
    manual.schedule()
    before = len(hf.schedules.slots("ingest", next=0))
    clock.advance(QUARTER)
    manual.schedule()
    clock.advance(QUARTER)
    manual.schedule()
    assert [slot.outcome for slot in hf.schedules.slots("ingest", next=0)][before:] == ["queued", "skipped"]


def a_slot_is_decided_once_though_someone_else_looks(on: Stage) -> None:
    """How far a schedule has come is written down: what was decided before is not looked at again."""
    hf, manual, clock = on.hf, on.manual, on.clock
    scheduled(hf, manual)
    clock.advance(QUARTER)
    manual.run_all()
    [standing] = hf.schedules.list()
    assert standing.considered_at == clock.now()


MUTANTS = [
    Mutant(
        "insert_slots",
        "on conflict do nothing",
        a_taken_slot_is_refused,
        "",
        fails_with=(sqlite.IntegrityError, psycopg.errors.UniqueViolation),
    ),
    Mutant("lock_schedule", "for update", eight_hands_get_one_run_past_the_overlap_policy, "", dialects=("postgres",)),
    Mutant(
        "find_active",
        "where run_key = :key and run_id is not null",
        a_running_run_is_in_the_way,
        "where run_key = :key and 1 = 0",
    ),
    Mutant("find_active", "and missing = 0", a_run_that_waits_is_in_the_way, "and 1 = 0"),
    Mutant(
        "set_schedule",
        "considered_at = :considered_at",
        a_slot_is_decided_once_though_someone_else_looks,
        "considered_at = coalesce(considered_at, :considered_at)",
    ),
]


@on_both
@pytest.mark.contract("J3", "J7")
@each_scenario(MUTANTS)
def test_the_statements_as_they_are_keep_their_promises(scenario: Scenario, stage_of: Callable[..., Stage]) -> None:
    scenario(stage_of())


@pytest.mark.contract("J3", "J7")
@each_mutant(MUTANTS)
def test_a_statement_that_is_broken_is_seen(mutant: Mutant, dialect: str, stage_of: Callable[..., Stage]) -> None:
    mutant.is_noticed(dialect, stage_of)
