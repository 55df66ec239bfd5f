"""Break each statement of the limits in turn: a scenario that passes must fail."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.contract.mutating import Scenario, Stage

from holdfast import QueueFull, StoreBusy
from holdfast.runs.limits import capacity
from holdfast.runs.limits.queues import limit_queue
from holdfast.runs.limits.unique import UniqueClaim, take_unique
from holdfast.store.queries import sources
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


MUTANTS: list[tuple[str, str, str, Scenario]] = [
    ("insert_runs", r"then null", "then '2026-01-01 00:00:00'", a_bound_that_no_one_here_knew_of_is_met),
    ("insert_runs", r":counted = 0", "(:counted = 0 or 1 = 1)", a_bound_admits_up_to_itself),
    (
        "lock_bounds",
        r"max_queued is not null",
        "max_queued is null",
        a_bound_is_found,
    ),
    ("find_unseated", r"(?:p\.)?queue = :queue", r"(\g<0> or 1 = 1)", only_the_runs_of_a_bounded_queue_are_seated),
    ("find_unseated", r"<> 'build'", "<> 'x'", a_build_takes_no_seat),
    (
        "delete_unbounded_seats",
        r"and queue not in \(select q\.name",
        "and '' not in (select q.name",
        a_bound_that_is_lifted_leaves_the_others,
    ),
    ("delete_unbounded_seats", r"q\.name = '\*'", "q.name = ''", a_bound_over_all_outlasts_that_of_a_queue),
    ("replace_uniques", r"\w+\.run_id = r\.(?:value ->> 'old_id'|old_id)", "1 = 1", who_saw_another_run_replaces_none),
    ("give_places", r"(?:p\.)?queue = :queue", r"(\g<0> or 1 = 1)", a_limit_numbers_only_what_runs_in_its_queue),
]
# SQL Server's statements are written in other words and are not mutated here.
pytestmark = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
SCENARIOS = list(dict.fromkeys([mutant[3] for mutant in MUTANTS] + [an_outcome_gives_back_its_own_seat_only]))


@pytest.mark.contract("Q8", "Q9")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_statements_as_they_are_keep_their_promises(scenario: Scenario, stage_of: Callable[..., Stage]) -> None:
    scenario(stage_of())


@pytest.mark.contract("Q8", "Q9")
@pytest.mark.parametrize(
    ("statement", "condition", "instead", "scenario"),
    MUTANTS,
    ids=[f"{statement}-{scenario.__name__}" for statement, _, _, scenario in MUTANTS],
)
def test_a_broken_condition_is_noticed(
    statement: str, condition: str, instead: str, scenario: Scenario, dialect: str, stage_of: Callable[..., Stage]
) -> None:
    text = sources(dialect)[statement]
    broken, count = re.subn(condition, instead, text)
    assert count, f"{dialect}/{statement}.sql has no {condition!r} any more: break what it has now"
    with pytest.raises((AssertionError, pytest.fail.Exception, StoreBusy)):
        scenario(stage_of({statement: broken}))
