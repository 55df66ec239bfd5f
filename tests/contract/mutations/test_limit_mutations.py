"""Break each statement of the limits: a scenario that passes must then fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.contract.mutations.scenario_setup import ScenarioSetup
from tests.mutants.statements import Mutant, Scenario, each_mutant, each_scenario, on_both

from holdfast import QueueFull, StoreBusy
from holdfast.runs.limits import capacity
from holdfast.runs.limits.queues import limit_queue
from holdfast.runs.limits.unique import UniqueClaim, take_unique
from holdfast.store.transaction import Transaction
from holdfast.values.queues import Limits


def capacity_used(on: ScenarioSetup) -> int:
    return sum(queue.capacity_used for queue in on.hf.queues.list() if queue.name != "*")


def a_capacity_unknown_to_this_process_is_obeyed(on: ScenarioSetup) -> None:
    on.submit()
    on.hf.do(lambda tx: limit_queue(tx, "default", Limits(max_queued=1)))
    with pytest.raises(QueueFull):
        on.submit()


def a_capacity_admits_exactly_that_many_runs(on: ScenarioSetup) -> None:
    on.hf.queues.limit("default", max_queued=2)
    on.submit()
    on.submit()
    assert capacity_used(on) == 2
    assert on.hf.verify() == []


def only_the_runs_of_a_limited_queue_use_capacity(on: ScenarioSetup) -> None:
    on.submit(queue="other")
    on.submit()
    on.hf.queues.limit("default", max_queued=9)
    assert capacity_used(on) == 1


def a_build_uses_no_capacity(on: ScenarioSetup) -> None:
    on.build.using(queue="default").submit(fingerprint="f")
    on.hf.queues.limit("default", max_queued=9)
    assert capacity_used(on) == 0


def lifting_a_capacity_keeps_the_others(on: ScenarioSetup) -> None:
    for queue in ("default", "other"):
        on.hf.queues.limit(queue, max_queued=9)
        on.submit(queue=queue)
    on.hf.queues.limit("other", max_queued=None)
    assert capacity_used(on) == 1


def the_capacity_of_all_queues_outlasts_that_of_one(on: ScenarioSetup) -> None:
    on.hf.queues.limit("*", max_queued=9)
    on.hf.queues.limit("default", max_queued=9)
    on.submit()
    on.hf.queues.limit("default", max_queued=None)
    assert capacity_used(on) == 1


def an_outcome_frees_only_its_own_capacity(on: ScenarioSetup) -> None:
    on.hf.queues.limit("default", max_queued=9)
    first, _ = on.submit(), on.submit()
    on.hf.cancel(first)
    assert capacity_used(on) == 1


def a_process_that_read_another_unique_run_replaces_none(on: ScenarioSetup) -> None:
    def swap(tx: Transaction) -> list[str]:
        take_unique(tx, [UniqueClaim("first", "work", "d", running=False)])
        row = {"job": "work", "digest": "d", "run_id": "mine", "old_id": "never there"}
        return [found["run_id"] for found in tx.all("replace_unique_runs", rows=[row])]

    assert on.hf.do(swap) == []


def a_limit_numbers_only_the_runs_of_its_queue(on: ScenarioSetup) -> None:
    on.submit(queue="other")
    [claim] = on.manual.worker("a", queues=["other"]).claim()
    on.hf.queues.limit("default", concurrency=1)
    assert claim.lease.permit is None
    with on.hf.store.reading() as tx:
        assert tx.all("find_permits_of", queue="other") == []


def the_capacity_of_a_queue_is_read(on: ScenarioSetup) -> None:
    on.hf.queues.limit("default", max_queued=9)
    before = on.hf.do(
        lambda tx: (
            tx.all("lock_queue", name="default") and capacity.bounds(tx, [capacity.CapacityRequest("x", "default")])
        )
    )
    assert before == {"default": 9}


MUTANTS = [
    Mutant(
        "insert_runs",
        r"then null",
        a_capacity_unknown_to_this_process_is_obeyed,
        "then '2026-01-01 00:00:00'",
        fails_with=(pytest.fail.Exception,),
    ),
    Mutant(
        "insert_runs",
        r":counted = 0",
        a_capacity_admits_exactly_that_many_runs,
        "(:counted = 0 or 1 = 1)",
        fails_with=(StoreBusy,),
    ),
    Mutant("lock_bounds", r"max_queued is not null", the_capacity_of_a_queue_is_read, "max_queued is null"),
    Mutant(
        "find_without_capacity",
        r"(?:p\.)?queue = :queue",
        only_the_runs_of_a_limited_queue_use_capacity,
        r"(\g<0> or 1 = 1)",
    ),
    Mutant("find_without_capacity", r"<> 'build'", a_build_uses_no_capacity, "<> 'x'"),
    Mutant(
        "delete_unbounded_capacity",
        r"and queue not in \(select q\.name",
        lifting_a_capacity_keeps_the_others,
        "and '' not in (select q.name",
    ),
    Mutant(
        "delete_unbounded_capacity", r"q\.name = '\*'", the_capacity_of_all_queues_outlasts_that_of_one, "q.name = ''"
    ),
    Mutant(
        "replace_unique_runs",
        r"\w+\.run_id = r\.(?:value ->> 'old_id'|old_id)",
        a_process_that_read_another_unique_run_replaces_none,
    ),
    Mutant(
        "assign_permits", r"(?:p\.)?queue = :queue", a_limit_numbers_only_the_runs_of_its_queue, r"(\g<0> or 1 = 1)"
    ),
]


@on_both
@pytest.mark.contract("Q8", "Q9")
@each_scenario(MUTANTS, [an_outcome_frees_only_its_own_capacity])
def test_unchanged_statements_pass_every_scenario(scenario: Scenario, make_setup: Callable[..., ScenarioSetup]) -> None:
    scenario(make_setup())


@pytest.mark.contract("Q8", "Q9")
@each_mutant(MUTANTS)
def test_a_statement_without_its_condition_fails_a_scenario(
    mutant: Mutant, dialect: str, make_setup: Callable[..., ScenarioSetup]
) -> None:
    mutant.is_noticed(dialect, make_setup)
