"""Break the statements of schedules: a scenario that passes must then fail."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from tests.contract.helpers.schedules import QUARTER, START, scheduled, trigger_from_eight_threads
from tests.contract.mutations.scenario_setup import ScenarioSetup
from tests.databases import sqlite
from tests.listing import runs_of
from tests.mutants.statements import Mutant, Scenario, each_mutant, each_scenario, on_both

from holdfast import SlotTaken


def a_taken_slot_is_refused(on: ScenarioSetup) -> None:
    hf, manual = on.hf, on.manual
    scheduled(hf, manual, overlap="wait")
    hf.schedules.trigger("ingest", scheduled_for=START)
    with pytest.raises(SlotTaken):
        hf.schedules.trigger("ingest", scheduled_for=START)


def of_eight_triggers_one_passes_the_overlap_policy(on: ScenarioSetup) -> None:
    hf, manual = on.hf, on.manual
    scheduled(hf, manual)
    for _ in range(10):  # a race: without the lock, two triggers succeed within a few rounds
        assert trigger_from_eight_threads(hf) == 1
        for run in runs_of(hf, state="queued"):
            hf.cancel(run.id)
        manual.orchestrate()
        hf.do(lambda tx: tx.put("delete_slots_of", ids=[run.id for run in runs_of(hf)]))


def a_running_run_blocks_the_slot(on: ScenarioSetup) -> None:
    hf, manual, clock = on.hf, on.manual, on.clock
    scheduled(hf, manual, timeout=7200)
    clock.advance(QUARTER)
    manual.schedule()
    manual.worker().claim()
    clock.advance(QUARTER)
    manual.schedule()
    assert [slot.outcome for slot in hf.schedules.slots("ingest", next=0)] == ["running", "skipped"]


def a_waiting_run_blocks_the_slot(on: ScenarioSetup) -> None:
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


def a_scheduler_stores_how_far_it_has_evaluated(on: ScenarioSetup) -> None:
    """It stores the time up to which it has decided slots, so that no slot is decided twice."""
    hf, manual, clock = on.hf, on.manual, on.clock
    scheduled(hf, manual)
    clock.advance(QUARTER)
    manual.run_all()
    [standing] = hf.schedules.list()
    assert standing.evaluated_at == clock.now()


MUTANTS = [
    Mutant(
        "insert_slots",
        "on conflict do nothing",
        a_taken_slot_is_refused,
        "",
        fails_with=(sqlite.IntegrityError, psycopg.errors.UniqueViolation),
    ),
    Mutant("lock_schedule", "for update", of_eight_triggers_one_passes_the_overlap_policy, "", dialects=("postgres",)),
    Mutant(
        "find_active",
        "where run_key = :key and run_id is not null",
        a_running_run_blocks_the_slot,
        "where run_key = :key and 1 = 0",
    ),
    Mutant("find_active", "and dependencies_left = 0", a_waiting_run_blocks_the_slot, "and 1 = 0"),
    Mutant(
        "set_schedule",
        "evaluated_at = :evaluated_at",
        a_scheduler_stores_how_far_it_has_evaluated,
        "evaluated_at = coalesce(evaluated_at, :evaluated_at)",
    ),
]


@on_both
@pytest.mark.contract("J3", "J7")
@each_scenario(MUTANTS)
def test_unchanged_statements_pass_every_scenario(scenario: Scenario, make_setup: Callable[..., ScenarioSetup]) -> None:
    scenario(make_setup())


@pytest.mark.contract("J3", "J7")
@each_mutant(MUTANTS)
def test_a_broken_schedule_statement_fails_a_scenario(
    mutant: Mutant, dialect: str, make_setup: Callable[..., ScenarioSetup]
) -> None:
    mutant.is_noticed(dialect, make_setup)
