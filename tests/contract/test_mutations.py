"""Drop each condition from the fenced statements in turn: a scenario that passes must fail.

The conditions of PostgreSQL's `locked` tables and of the outer statement say the same twice (the first is for the order
of locks); they are dropped together.
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
from tests.contract.stage import Stage
from tests.mutants.statements import Mutant, Scenario, broken, each_mutant, each_scenario, on_both

from holdfast.values.events import Event
from holdfast.worker.event_buffer import EventBuffer

# Conditions in each dialect's words.

HOLDER = r"(?:\w+\.)?holder = :holder"
ATTEMPT = r"(?:\w+\.)?attempt = (?:r\.value ->> 'attempt'|(?:given|r)\.attempt)"
RUN = r"(?:\w+\.)?run_id = (?:r\.value ->> 'run_id'|(?:given|r)\.run_id)"
EXPIRY = r"l\.expires_at = r\.(?:value ->> 'expires_at'|expires_at)"
OPEN = r"(?:\w+\.)?run_id is null"
OF_THESE = r"run_id (?:in \(select value from json_each\(:ids\)\)|= any \(array\(.*?:ids as json\)\)\)\))"
WAITER = r"w\.run_key = (?:value ->> 'run_key'|r\.run_key)"

MUTANTS = [
    Mutant(
        "replace_builds",
        r"\w+\.run_id = r\.(?:value ->> 'old_id'|old_id)",
        one_of_two_who_saw_the_same_making_replaces_it,
    ),
    Mutant("invalidate_build", r"run_id = :run_id", what_was_made_anew_is_not_invalidated_by_who_saw_the_old),
    Mutant("delete_step", r"run_id = :run_id", a_step_is_forgotten_alone),
    Mutant("delete_step", r"name = :name", a_step_is_forgotten_alone),
    Mutant("delete_asks_of", OF_THESE, a_cancelled_run_takes_back_its_own_asks_only),
    Mutant("delete_leases", HOLDER, another_holder_finishes_nothing),
    Mutant("delete_leases", ATTEMPT, an_older_attempt_of_the_same_holder_finishes_nothing),
    Mutant("delete_leases", RUN, a_finish_touches_no_other_run),
    Mutant("renew_leases", HOLDER, another_holder_renews_nothing),
    Mutant("renew_leases", ATTEMPT, an_older_attempt_renews_nothing),
    Mutant("guard_leases", HOLDER, another_holder_guards_nothing),
    Mutant("guard_leases", ATTEMPT, an_older_attempt_guards_nothing),
    Mutant("guard_leases", RUN, a_guard_is_for_its_own_run),
    Mutant("delete_expired", EXPIRY, a_lease_that_was_renewed_is_not_taken_away),
    Mutant("delete_expired", ATTEMPT, a_later_attempt_is_not_taken_away),
    Mutant("delete_expired", RUN, only_the_lease_that_was_seen_is_taken_away),
    Mutant("mark_expired", r"expires_at < :now", a_lease_that_has_time_left_is_not_marked),
    Mutant("mark_expired", r"expired_seen_at is null", a_lease_that_is_seen_expired_again_and_again_is_taken_away),
    Mutant("find_expired", r"l\.expired_seen_at <= :seen_before", a_lease_is_not_taken_away_before_the_wait_is_over),
    Mutant("give_holds", OPEN, a_held_key_is_not_given_away),
    Mutant("delete_open_holds", OPEN, a_held_key_is_not_removed),
    Mutant("find_turns", r"w\.key_limit >= [fk]\.number", a_hold_beyond_its_limit_is_not_given),
    Mutant("clear_looks", r"h\.number <= \w+\.key_limit", a_look_stays_while_a_hold_within_its_limit_is_free),
    Mutant("open_holds", OF_THESE, a_finish_opens_its_own_key_only),
    Mutant("take_holds", r"w\.due_at is null or ", a_key_that_a_due_run_waits_for_is_not_taken),
    Mutant("take_holds", r" or w\.due_at <= :now", a_key_whose_waiter_has_come_due_is_not_taken),
    Mutant("take_holds", r"\(w\.due_at is null or w\.due_at <= :now\)", a_key_that_a_run_wants_later_is_free),
    Mutant("take_holds", r"w\.missing = 0", a_key_that_a_needy_run_wants_is_free),
    Mutant("take_holds", WAITER, a_key_is_not_blocked_by_who_waits_for_another),
    Mutant("find_turns", r"w\.due_at (?:is null|<= :now)", a_turn_is_not_given_before_its_time),
    Mutant("find_turns", r"w\.missing = 0", a_turn_is_not_given_before_its_needs),
    Mutant("find_due", r"missing = 0", a_run_is_not_due_before_its_needs),
    Mutant("find_due", r"due_at <= :now", a_run_is_not_due_before_its_time),
    Mutant("clear_looks", r"h\.run_id is not null", a_look_stays_while_the_key_is_open),
    Mutant("clear_looks", r"not exists", a_look_stays_while_a_need_is_met),
    Mutant("request_cancels", r"run_id (?:in|= any) ?\(.*:ids.*\)$", a_cancel_stops_its_own_run_only),
    Mutant("delete_expired_worker", r"expires_at < :now", a_live_worker_keeps_its_exclusive_name),
    Mutant("delete_expired_worker", r"seen_at = :seen_at", a_worker_that_was_heard_again_keeps_its_exclusive_name),
    Mutant("take_ready", r"y\.job (?:in|= any) ?\(.*?:jobs.*?\)+$", a_worker_claims_only_jobs_that_it_knows),
    Mutant("take_ready", r"y\.queue = :queue", a_worker_claims_only_from_its_queues),
]

# They pass with the statements as they are; what they prove has no condition that can be dropped alone.
OTHERS: list[Scenario] = [
    a_renewal_begins_the_wait_anew,
    a_renewal_touches_no_other_run,
    a_key_is_given_to_its_own_run,
    a_turn_is_given_by_its_number,
]


@on_both
@pytest.mark.contract("L5", "Q12", "P2", "P9")
@each_scenario(MUTANTS, OTHERS)
def test_the_statements_as_they_are_keep_their_promises(scenario: Scenario, stage_of: Callable[..., Stage]) -> None:
    scenario(stage_of())


@pytest.mark.contract("L5", "Q12", "P2", "P9")
@each_mutant(MUTANTS)
def test_a_dropped_condition_is_noticed(mutant: Mutant, dialect: str, stage_of: Callable[..., Stage]) -> None:
    mutant.is_noticed(dialect, stage_of)


@on_both
def test_a_renewal_that_leaves_the_mark_is_noticed(dialect: str, stage_of: Callable[..., Stage]) -> None:
    column = "l.expired_seen_at" if dialect == "postgres" else "expired_seen_at"
    kept = broken(dialect, "renew_leases", "expired_seen_at = null", f"expired_seen_at = {column}")
    with pytest.raises(AssertionError):
        a_renewal_begins_the_wait_anew(stage_of(kept))


@on_both
def test_events_of_a_stale_attempt_are_dropped(stage_of: Callable[..., Stage]) -> None:
    """What a lingering attempt tells is not written, and costs the attempt that runs nothing."""
    on = stage_of()
    run = on.submit()
    old = on.claim("a")
    new = on.claimed_again(run, "a")
    event_buffer = EventBuffer("a")
    for claim in (new, old):
        event_buffer.tell(claim.lease, "PROGRESS", {"attempt": claim.lease.attempt}, at=on.clock.now())
    on.hf.do(lambda tx: event_buffer.write(tx, event_buffer.take()))
    told: list[Event] = [event for event in on.hf.story(run) if event.kind == "PROGRESS"]
    assert [event.attempt for event in told] == [new.lease.attempt]
