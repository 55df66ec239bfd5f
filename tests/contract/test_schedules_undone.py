"""Break the statements of schedules on purpose: a scenario that passes must fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from tests.contract.scheduling import QUARTER, START, one_of_eight_hands, scheduled
from tests.databases import sqlite

from holdfast import Holdfast, SlotTaken
from holdfast.store import connect
from holdfast.store.queries import Queries, sources
from holdfast.support.ids import Ids
from holdfast.testing.clock import FakeClock
from holdfast.testing.manual import Manual

Stage = tuple[Holdfast, Manual, FakeClock]
Scenario = Callable[[Stage], None]


def a_taken_slot_is_refused(stage: Stage) -> None:
    hf, manual, _ = stage
    scheduled(hf, manual, overlap="wait")
    hf.schedules.trigger("ingest", scheduled_for=START)
    with pytest.raises(SlotTaken):
        hf.schedules.trigger("ingest", scheduled_for=START)


def eight_hands_get_one_run_past_the_overlap_policy(stage: Stage) -> None:
    hf, manual, _ = stage
    scheduled(hf, manual)
    for _ in range(10):  # a race: without the lock it is lost within a few rounds
        assert one_of_eight_hands(hf) == 1
        for run in hf.list_runs(state="queued"):
            hf.cancel(run.id)
        manual.orchestrate()
        hf.do(lambda tx: tx.put("delete_slots_of", ids=[run.id for run in hf.list_runs(limit=1000)]))


def a_running_run_is_in_the_way(stage: Stage) -> None:
    hf, manual, clock = stage
    scheduled(hf, manual, max_runtime=7200)
    clock.advance(QUARTER)
    manual.schedule()
    manual.worker().claim()
    clock.advance(QUARTER)
    manual.schedule()
    assert [slot.outcome for slot in hf.schedules.slots("ingest", next=0)] == ["running", "skipped"]


def a_run_that_waits_is_in_the_way(stage: Stage) -> None:
    hf, manual, clock = stage
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


def a_slot_is_decided_once_though_someone_else_looks(stage: Stage) -> None:
    """How far a schedule has come is written down: what was decided before is not looked at again."""
    hf, manual, clock = stage
    scheduled(hf, manual)
    clock.advance(QUARTER)
    manual.run_all()
    [standing] = hf.schedules.list()
    assert standing.considered_at == clock.now()


MUTANTS: list[tuple[str, str, str, str, Scenario]] = [
    ("sqlite", "insert_slots", "on conflict do nothing", "", a_taken_slot_is_refused),
    ("postgres", "insert_slots", "on conflict do nothing", "", a_taken_slot_is_refused),
    ("postgres", "lock_schedule", "for update", "", eight_hands_get_one_run_past_the_overlap_policy),
    *(
        mutant
        for dialect in ("sqlite", "postgres")
        for mutant in (
            (
                dialect,
                "find_active",
                "where key = :key and run_id is not null",
                "where key = :key and 1 = 0",
                a_running_run_is_in_the_way,
            ),
            (dialect, "find_active", "and missing = 0", "and 1 = 0", a_run_that_waits_is_in_the_way),
            (
                dialect,
                "set_schedule",
                "considered_at = :considered_at",
                "considered_at = coalesce(considered_at, :considered_at)",
                a_slot_is_decided_once_though_someone_else_looks,
            ),
        )
    ),
]
SCENARIOS = list(dict.fromkeys(scenario for *_, scenario in MUTANTS))


@pytest.fixture
def stage_of(request: pytest.FixtureRequest) -> Iterator[Callable[..., Stage]]:
    opened: list[Holdfast] = []

    def make(dialect: str, replaced: dict[str, str] | None = None) -> Stage:
        clock = FakeClock()
        hf = Holdfast(request.getfixturevalue(f"{dialect}_url"), clock=clock, ids=Ids(seed=1))
        opened.append(hf)
        prefix = connect.prefix(hf.settings, hf._store.dialect)
        hf._store.queries = Queries(dialect, prefix=prefix, style=hf._store.dialect.style, replaced=replaced)
        return hf, Manual(hf), clock

    yield make
    for hf in opened:
        hf.close()


@pytest.mark.contract("J3", "J7")
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_statements_as_they_are_keep_their_promises(
    scenario: Scenario, dialect: str, stage_of: Callable[..., Stage]
) -> None:
    scenario(stage_of(dialect))


@pytest.mark.contract("J3", "J7")
@pytest.mark.parametrize(
    ("dialect", "name", "condition", "instead", "scenario"),
    MUTANTS,
    ids=[f"{dialect}-{name}-{scenario.__name__}" for dialect, name, *_, scenario in MUTANTS],
)
def test_a_statement_that_is_broken_is_seen(
    dialect: str, name: str, condition: str, instead: str, scenario: Scenario, stage_of: Callable[..., Any]
) -> None:
    text = sources(dialect)[name]
    assert text.count(condition) == 1, f"{name} does not say {condition!r} any more"
    stage = stage_of(dialect, {name: text.replace(condition, instead)})
    with pytest.raises((AssertionError, sqlite.IntegrityError, psycopg.errors.UniqueViolation)):
        scenario(stage)
