"""Break each statement of the limits in turn: a scenario that passes must fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.contract.stage import Stage
from tests.mutants.statements import Mutant, Scenario, each_mutant, each_scenario, on_both

from holdfast import QueueFull, StoreBusy
from holdfast.runs.limits import capacity
from holdfast.runs.limits.queues import limit_queue
from holdfast.runs.limits.unique import UniqueClaim, take_unique
from holdfast.store.transaction import Transaction
from holdfast.values.queues import Limits


def seated(on: Stage) -> int:
    return sum(queue.seats for queue in on.hf.queues.list() if queue.name != "*")


def a_bound_that_no_one_here_knew_of_is_met(on: Stage) -> None:
    on.submit()
    on.hf.do(lambda tx: limit_queue(tx, "default", Limits(max_queued=1)))
    with pytest.raises(QueueFull):
        on.submit()


def a_bound_admits_up_to_itself(on: Stage) -> None:
    on.hf.queues.limit("default", max_queued=2)
    on.submit()
    on.submit()
    assert seated(on) == 2
    assert on.hf.verify() == []


def only_the_runs_of_a_bounded_queue_are_seated(on: Stage) -> None:
    on.submit(queue="other")
    on.submit()
    on.hf.queues.limit("default", max_queued=9)
    assert seated(on) == 1


def a_build_takes_no_seat(on: Stage) -> None:
    on.build.using(queue="default").submit(fingerprint="f")
    on.hf.queues.limit("default", max_queued=9)
    assert seated(on) == 0


def a_bound_that_is_lifted_leaves_the_others(on: Stage) -> None:
    for queue in ("default", "other"):
        on.hf.queues.limit(queue, max_queued=9)
        on.submit(queue=queue)
    on.hf.queues.limit("other", max_queued=None)
    assert seated(on) == 1


def a_bound_over_all_outlasts_that_of_a_queue(on: Stage) -> None:
    on.hf.queues.limit("*", max_queued=9)
    on.hf.queues.limit("default", max_queued=9)
    on.submit()
    on.hf.queues.limit("default", max_queued=None)
    assert seated(on) == 1


def an_outcome_gives_back_its_own_seat_only(on: Stage) -> None:
    on.hf.queues.limit("default", max_queued=9)
    first, _ = on.submit(), on.submit()
    on.hf.cancel(first)
    assert seated(on) == 1


def who_saw_another_run_replaces_none(on: Stage) -> None:
    def swap(tx: Transaction) -> list[str]:
        take_unique(tx, [UniqueClaim("first", "work", "d", running=False)])
        row = {"job": "work", "digest": "d", "run_id": "mine", "old_id": "never there"}
        return [found["run_id"] for found in tx.all("replace_uniques", rows=[row])]

    assert on.hf.do(swap) == []


def a_limit_numbers_only_what_runs_in_its_queue(on: Stage) -> None:
    on.submit(queue="other")
    [claim] = on.manual.worker("a", queues=["other"]).claim()
    on.hf.queues.limit("default", concurrency=1)
    assert claim.lease.place is None
    with on.hf.store.reading() as tx:
        assert tx.all("find_placed", queue="other") == []


def a_bound_is_found(on: Stage) -> None:
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
        a_bound_that_no_one_here_knew_of_is_met,
        "then '2026-01-01 00:00:00'",
        fails_with=(pytest.fail.Exception,),
    ),
    Mutant(
        "insert_runs",
        r":counted = 0",
        a_bound_admits_up_to_itself,
        "(:counted = 0 or 1 = 1)",
        fails_with=(StoreBusy,),
    ),
    Mutant("lock_bounds", r"max_queued is not null", a_bound_is_found, "max_queued is null"),
    Mutant(
        "find_unseated", r"(?:p\.)?queue = :queue", only_the_runs_of_a_bounded_queue_are_seated, r"(\g<0> or 1 = 1)"
    ),
    Mutant("find_unseated", r"<> 'build'", a_build_takes_no_seat, "<> 'x'"),
    Mutant(
        "delete_unbounded_seats",
        r"and queue not in \(select q\.name",
        a_bound_that_is_lifted_leaves_the_others,
        "and '' not in (select q.name",
    ),
    Mutant("delete_unbounded_seats", r"q\.name = '\*'", a_bound_over_all_outlasts_that_of_a_queue, "q.name = ''"),
    Mutant("replace_uniques", r"\w+\.run_id = r\.(?:value ->> 'old_id'|old_id)", who_saw_another_run_replaces_none),
    Mutant("give_places", r"(?:p\.)?queue = :queue", a_limit_numbers_only_what_runs_in_its_queue, r"(\g<0> or 1 = 1)"),
]


@on_both
@pytest.mark.contract("Q8", "Q9")
@each_scenario(MUTANTS, [an_outcome_gives_back_its_own_seat_only])
def test_the_statements_as_they_are_keep_their_promises(scenario: Scenario, stage_of: Callable[..., Stage]) -> None:
    scenario(stage_of())


@pytest.mark.contract("Q8", "Q9")
@each_mutant(MUTANTS)
def test_a_broken_condition_is_noticed(mutant: Mutant, dialect: str, stage_of: Callable[..., Stage]) -> None:
    mutant.is_noticed(dialect, stage_of)
