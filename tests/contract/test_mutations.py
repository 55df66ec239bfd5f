"""Drop each condition from the fenced statements in turn: a scenario that passes must fail.

A mutant is made from the statement as it is written, on each dialect. A condition that is not found fails the test, so
that a statement can't change and silently escape. The conditions of PostgreSQL's `locked` tables and of the outer
statement say the same twice (the first is for the order of locks); they are dropped together.

SQL Server's statements are written in other words and are not mutated here.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.contract.key_scenarios import (
    a_finish_opens_its_own_key_only,
    a_held_key_is_not_given_away,
    a_held_key_is_not_removed,
    a_hold_beyond_its_limit_is_not_given,
    a_key_is_given_to_its_own_run,
    a_key_is_not_blocked_by_who_waits_for_another,
    a_key_that_a_due_run_waits_for_is_not_taken,
    a_key_that_a_needy_run_wants_is_free,
    a_key_that_a_run_wants_later_is_free,
    a_key_whose_waiter_has_come_due_is_not_taken,
    a_look_stays_while_a_hold_within_its_limit_is_free,
    a_look_stays_while_the_key_is_open,
    a_turn_is_given_by_its_number,
    a_turn_is_not_given_before_its_needs,
    a_turn_is_not_given_before_its_time,
)
from tests.contract.lease_scenarios import (
    a_cancel_stops_its_own_run_only,
    a_finish_touches_no_other_run,
    a_guard_is_for_its_own_run,
    a_later_attempt_is_not_taken_away,
    a_lease_is_not_taken_away_before_the_wait_is_over,
    a_lease_that_has_time_left_is_not_marked,
    a_lease_that_is_seen_expired_again_and_again_is_taken_away,
    a_lease_that_was_renewed_is_not_taken_away,
    a_renewal_begins_the_wait_anew,
    a_renewal_touches_no_other_run,
    an_older_attempt_guards_nothing,
    an_older_attempt_of_the_same_holder_finishes_nothing,
    an_older_attempt_renews_nothing,
    another_holder_finishes_nothing,
    another_holder_guards_nothing,
    another_holder_renews_nothing,
    only_the_lease_that_was_seen_is_taken_away,
)
from tests.contract.mutating import Scenario, Stage, without
from tests.contract.run_scenarios import (
    a_cancelled_run_takes_back_its_own_asks_only,
    a_live_worker_keeps_its_exclusive_name,
    a_look_stays_while_a_need_is_met,
    a_run_is_not_due_before_its_needs,
    a_run_is_not_due_before_its_time,
    a_step_is_forgotten_alone,
    a_worker_claims_only_from_its_queues,
    a_worker_claims_only_jobs_that_it_knows,
    a_worker_that_was_heard_again_keeps_its_exclusive_name,
    one_of_two_who_saw_the_same_making_replaces_it,
    what_was_made_anew_is_not_invalidated_by_who_saw_the_old,
)

from holdfast.store.queries import sources
from holdfast.values.events import Event
from holdfast.worker.event_buffer import EventBuffer

# Mutants: the statement, the condition in each dialect's words, and the scenario that dies with it.

HOLDER = r"(?:\w+\.)?holder = :holder"
ATTEMPT = r"(?:\w+\.)?attempt = (?:r\.value ->> 'attempt'|(?:given|r)\.attempt)"
RUN = r"(?:\w+\.)?run_id = (?:r\.value ->> 'run_id'|(?:given|r)\.run_id)"
EXPIRY = r"l\.expires_at = r\.(?:value ->> 'expires_at'|expires_at)"
OPEN = r"(?:\w+\.)?run_id is null"
OF_THESE = r"run_id (?:in \(select value from json_each\(:ids\)\)|= any \(array\(.*?:ids as json\)\)\)\))"
WAITER = r"w\.key = (?:value ->> 'key'|r\.key)"

MUTANTS: list[tuple[str, str, Scenario]] = [
    (
        "replace_builds",
        r"\w+\.run_id = r\.(?:value ->> 'old_id'|old_id)",
        one_of_two_who_saw_the_same_making_replaces_it,
    ),
    ("invalidate_build", r"run_id = :run_id", what_was_made_anew_is_not_invalidated_by_who_saw_the_old),
    ("delete_step", r"run_id = :run_id", a_step_is_forgotten_alone),
    ("delete_step", r"name = :name", a_step_is_forgotten_alone),
    ("delete_asks_of", OF_THESE, a_cancelled_run_takes_back_its_own_asks_only),
    ("delete_leases", HOLDER, another_holder_finishes_nothing),
    ("delete_leases", ATTEMPT, an_older_attempt_of_the_same_holder_finishes_nothing),
    ("delete_leases", RUN, a_finish_touches_no_other_run),
    ("renew_leases", HOLDER, another_holder_renews_nothing),
    ("renew_leases", ATTEMPT, an_older_attempt_renews_nothing),
    ("guard_leases", HOLDER, another_holder_guards_nothing),
    ("guard_leases", ATTEMPT, an_older_attempt_guards_nothing),
    ("guard_leases", RUN, a_guard_is_for_its_own_run),
    ("delete_expired", EXPIRY, a_lease_that_was_renewed_is_not_taken_away),
    ("delete_expired", ATTEMPT, a_later_attempt_is_not_taken_away),
    ("delete_expired", RUN, only_the_lease_that_was_seen_is_taken_away),
    ("mark_expired", r"expires_at < :now", a_lease_that_has_time_left_is_not_marked),
    ("mark_expired", r"expired_seen_at is null", a_lease_that_is_seen_expired_again_and_again_is_taken_away),
    ("find_expired", r"l\.expired_seen_at <= :seen_before", a_lease_is_not_taken_away_before_the_wait_is_over),
    ("give_holds", OPEN, a_held_key_is_not_given_away),
    ("delete_open_holds", OPEN, a_held_key_is_not_removed),
    ("find_turns", r"w\.key_limit >= [fk]\.number", a_hold_beyond_its_limit_is_not_given),
    ("clear_looks", r"h\.number <= \w+\.key_limit", a_look_stays_while_a_hold_within_its_limit_is_free),
    ("open_holds", OF_THESE, a_finish_opens_its_own_key_only),
    ("take_holds", r"w\.due_at is null or ", a_key_that_a_due_run_waits_for_is_not_taken),
    ("take_holds", r" or w\.due_at <= :now", a_key_whose_waiter_has_come_due_is_not_taken),
    ("take_holds", r"\(w\.due_at is null or w\.due_at <= :now\)", a_key_that_a_run_wants_later_is_free),
    ("take_holds", r"w\.missing = 0", a_key_that_a_needy_run_wants_is_free),
    ("take_holds", WAITER, a_key_is_not_blocked_by_who_waits_for_another),
    ("find_turns", r"w\.due_at (?:is null|<= :now)", a_turn_is_not_given_before_its_time),
    ("find_turns", r"w\.missing = 0", a_turn_is_not_given_before_its_needs),
    ("find_due", r"missing = 0", a_run_is_not_due_before_its_needs),
    ("find_due", r"due_at <= :now", a_run_is_not_due_before_its_time),
    ("clear_looks", r"h\.run_id is not null", a_look_stays_while_the_key_is_open),
    ("clear_looks", r"not exists", a_look_stays_while_a_need_is_met),
    ("request_cancel", r"run_id = :run_id", a_cancel_stops_its_own_run_only),
    ("delete_expired_worker", r"expires_at < :now", a_live_worker_keeps_its_exclusive_name),
    ("delete_expired_worker", r"seen_at = :seen_at", a_worker_that_was_heard_again_keeps_its_exclusive_name),
    ("take_ready", r"y\.job (?:in|= any) ?\(.*?:jobs.*?\)+$", a_worker_claims_only_jobs_that_it_knows),
    ("take_ready", r"y\.queue = :queue", a_worker_claims_only_from_its_queues),
]

# They pass with the statements as they are; what they prove has no condition that can be dropped alone.
OTHERS: list[Scenario] = [
    a_renewal_begins_the_wait_anew,
    a_renewal_touches_no_other_run,
    a_key_is_given_to_its_own_run,
    a_turn_is_given_by_its_number,
]

pytestmark = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)


SCENARIOS = list(dict.fromkeys([scenario for _, _, scenario in MUTANTS] + OTHERS))


@pytest.mark.contract("L5", "Q12", "P2", "P9")
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_the_statements_as_they_are_keep_their_promises(scenario: Scenario, stage_of: Callable[..., Stage]) -> None:
    scenario(stage_of())


@pytest.mark.contract("L5", "Q12", "P2", "P9")
@pytest.mark.parametrize(
    ("statement", "condition", "scenario"),
    MUTANTS,
    ids=[f"{statement}-{scenario.__name__}" for statement, _, scenario in MUTANTS],
)
def test_a_dropped_condition_is_noticed(
    statement: str, condition: str, scenario: Scenario, dialect: str, stage_of: Callable[..., Stage]
) -> None:
    mutant = without(statement, condition, dialect)
    with pytest.raises(AssertionError):
        scenario(stage_of({statement: mutant}))


def test_a_renewal_that_leaves_the_mark_is_noticed(dialect: str, stage_of: Callable[..., Stage]) -> None:
    text = sources(dialect)["renew_leases"]
    kept = text.replace("expired_seen_at = null", "expired_seen_at = expired_seen_at")
    assert kept != text
    kept = kept.replace("= expired_seen_at", "= l.expired_seen_at") if dialect == "postgres" else kept
    with pytest.raises(AssertionError):
        a_renewal_begins_the_wait_anew(stage_of({"renew_leases": kept}))


def test_events_of_a_stale_attempt_are_dropped(stage_of: Callable[..., Stage]) -> None:
    """What a lingering attempt tells is not written, and costs the attempt that runs nothing."""
    on = stage_of()
    run = on.submit()
    old = on.claim("a")
    new = on.claimed_again(run, "a")
    chronicle = EventBuffer("a")
    for claim in (new, old):
        chronicle.tell(claim.lease, "PROGRESS", {"attempt": claim.lease.attempt}, at=on.clock.now())
    on.hf.do(lambda tx: chronicle.write(tx, chronicle.take()))
    told: list[Event] = [event for event in on.hf.story(run) if event.kind == "PROGRESS"]
    assert [event.attempt for event in told] == [new.lease.attempt]
