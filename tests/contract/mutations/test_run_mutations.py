"""Drop each condition of the fenced statements: a scenario that passes must then fail.

In PostgreSQL some conditions occur twice, in the `locked` table, which fixes the order of locks, and in the outer
statement; both are dropped together.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.contract.mutations.key_scenarios import (
    a_check_flag_stays_while_a_key_lock_within_the_limit_is_free,
    a_check_flag_stays_while_the_key_is_free,
    a_finish_frees_only_its_own_key,
    a_held_key_lock_is_not_deleted,
    a_held_key_lock_is_not_given_to_another_run,
    a_key_is_not_blocked_by_a_run_that_waits_for_another_key,
    a_key_lock_beyond_the_limit_is_not_given,
    a_key_lock_is_given_to_its_own_run,
    a_key_of_a_delayed_run_is_free,
    a_key_of_a_run_with_open_dependencies_is_free,
    a_key_whose_waiting_run_has_become_due_is_not_taken,
    a_key_with_a_due_waiting_run_is_not_taken,
    a_turn_is_given_by_key_number,
    a_turn_is_not_given_before_the_dependencies_are_met,
    a_turn_is_not_given_before_the_due_time,
)
from tests.contract.mutations.lease_scenarios import (
    a_cancel_stops_its_own_run_only,
    a_fence_is_for_its_own_run,
    a_finish_touches_no_other_run,
    a_later_claim_is_not_recovered,
    a_lease_is_not_recovered_before_the_wait_is_over,
    a_lease_that_stays_expired_is_recovered,
    a_lease_with_time_left_is_not_marked,
    a_renewal_restarts_the_wait,
    a_renewal_touches_no_other_run,
    a_renewed_lease_is_not_recovered,
    an_older_claim_of_the_same_worker_finishes_nothing,
    an_older_claim_passes_no_fence,
    an_older_claim_renews_nothing,
    another_worker_finishes_nothing,
    another_worker_passes_no_fence,
    another_worker_renews_nothing,
    only_the_marked_lease_is_recovered,
)
from tests.contract.mutations.run_scenarios import (
    a_cancelled_run_deletes_only_its_own_build_requests,
    a_check_flag_stays_while_a_dependency_is_met,
    a_live_worker_keeps_its_exclusive_name,
    a_rebuilt_build_is_not_invalidated_by_a_process_that_read_the_old_one,
    a_run_is_not_due_before_its_dependencies,
    a_run_is_not_due_before_its_time,
    a_worker_claims_only_from_its_queues,
    a_worker_claims_only_jobs_that_it_knows,
    a_worker_that_was_seen_again_keeps_its_exclusive_name,
    forgetting_a_step_keeps_all_others,
    one_of_two_processes_that_read_the_same_build_replaces_it,
)
from tests.contract.mutations.scenario_setup import ScenarioSetup
from tests.mutants.statements import Mutant, Scenario, broken, each_mutant, each_scenario, on_both

from holdfast.values.events import Event
from holdfast.worker.event_buffer import EventBuffer

# Conditions as the dialects write them.

HOLDER = r"(?:\w+\.)?holder = :holder"
CLAIM = r"(?:\w+\.)?claim = (?:r\.value ->> 'claim'|(?:given|r)\.claim)"
RUN = r"(?:\w+\.)?run_id = (?:r\.value ->> 'run_id'|(?:given|r)\.run_id)"
EXPIRY = r"l\.expires_at = r\.(?:value ->> 'expires_at'|expires_at)"
OPEN = r"(?:\w+\.)?run_id is null"
OF_THESE = r"run_id (?:in \(select value from json_each\(:ids\)\)|= any \(array\(.*?:ids as json\)\)\)\))"
WAITER = r"w\.run_key = (?:value ->> 'run_key'|r\.run_key)"

MUTANTS = [
    Mutant(
        "replace_builds",
        r"\w+\.run_id = r\.(?:value ->> 'old_id'|old_id)",
        one_of_two_processes_that_read_the_same_build_replaces_it,
    ),
    Mutant(
        "invalidate_build", r"run_id = :run_id", a_rebuilt_build_is_not_invalidated_by_a_process_that_read_the_old_one
    ),
    Mutant("delete_step", r"run_id = :run_id", forgetting_a_step_keeps_all_others),
    Mutant("delete_step", r"name = :name", forgetting_a_step_keeps_all_others),
    Mutant("delete_build_requests_of", OF_THESE, a_cancelled_run_deletes_only_its_own_build_requests),
    Mutant("delete_leases", HOLDER, another_worker_finishes_nothing),
    Mutant("delete_leases", CLAIM, an_older_claim_of_the_same_worker_finishes_nothing),
    Mutant("delete_leases", RUN, a_finish_touches_no_other_run),
    Mutant("renew_leases", HOLDER, another_worker_renews_nothing),
    Mutant("renew_leases", CLAIM, an_older_claim_renews_nothing),
    Mutant("guard_leases", HOLDER, another_worker_passes_no_fence),
    Mutant("guard_leases", CLAIM, an_older_claim_passes_no_fence),
    Mutant("guard_leases", RUN, a_fence_is_for_its_own_run),
    Mutant("delete_expired", EXPIRY, a_renewed_lease_is_not_recovered),
    Mutant("delete_expired", CLAIM, a_later_claim_is_not_recovered),
    Mutant("delete_expired", RUN, only_the_marked_lease_is_recovered),
    Mutant("mark_expired", r"expires_at < :now", a_lease_with_time_left_is_not_marked),
    Mutant("mark_expired", r"expired_seen_at is null", a_lease_that_stays_expired_is_recovered),
    Mutant("find_expired", r"l\.expired_seen_at <= :seen_before", a_lease_is_not_recovered_before_the_wait_is_over),
    Mutant("hand_over_key_locks", OPEN, a_held_key_lock_is_not_given_to_another_run),
    Mutant("delete_open_key_locks", OPEN, a_held_key_lock_is_not_deleted),
    Mutant("find_turns", r"w\.key_limit >= [fk]\.key_number", a_key_lock_beyond_the_limit_is_not_given),
    Mutant(
        "mark_checked", r"h\.key_number <= \w+\.key_limit", a_check_flag_stays_while_a_key_lock_within_the_limit_is_free
    ),
    Mutant("open_key_locks", OF_THESE, a_finish_frees_only_its_own_key),
    Mutant("take_key_locks", r"w\.due_at is null or ", a_key_with_a_due_waiting_run_is_not_taken),
    Mutant("take_key_locks", r" or w\.due_at <= :now", a_key_whose_waiting_run_has_become_due_is_not_taken),
    Mutant("take_key_locks", r"\(w\.due_at is null or w\.due_at <= :now\)", a_key_of_a_delayed_run_is_free),
    Mutant("take_key_locks", r"w\.dependencies_left = 0", a_key_of_a_run_with_open_dependencies_is_free),
    Mutant("take_key_locks", WAITER, a_key_is_not_blocked_by_a_run_that_waits_for_another_key),
    Mutant("find_turns", r"w\.due_at (?:is null|<= :now)", a_turn_is_not_given_before_the_due_time),
    Mutant("find_turns", r"w\.dependencies_left = 0", a_turn_is_not_given_before_the_dependencies_are_met),
    Mutant("find_due", r"dependencies_left = 0", a_run_is_not_due_before_its_dependencies),
    Mutant("find_due", r"due_at <= :now", a_run_is_not_due_before_its_time),
    Mutant("mark_checked", r"h\.run_id is not null", a_check_flag_stays_while_the_key_is_free),
    Mutant("mark_checked", r"not exists", a_check_flag_stays_while_a_dependency_is_met),
    Mutant("request_cancels", r"run_id (?:in|= any) ?\(.*:ids.*\)$", a_cancel_stops_its_own_run_only),
    Mutant("delete_expired_worker", r"expires_at < :now", a_live_worker_keeps_its_exclusive_name),
    Mutant(
        "delete_expired_worker", r"last_seen_at = :last_seen_at", a_worker_that_was_seen_again_keeps_its_exclusive_name
    ),
    Mutant("take_ready", r"y\.job (?:in|= any) ?\(.*?:jobs.*?\)+$", a_worker_claims_only_jobs_that_it_knows),
    Mutant("take_ready", r"y\.queue = :queue", a_worker_claims_only_from_its_queues),
]

# Scenarios for which there is no condition that can be dropped alone.
OTHERS: list[Scenario] = [
    a_renewal_restarts_the_wait,
    a_renewal_touches_no_other_run,
    a_key_lock_is_given_to_its_own_run,
    a_turn_is_given_by_key_number,
]


@on_both
@pytest.mark.contract("L5", "Q12", "P2", "P9")
@each_scenario(MUTANTS, OTHERS)
def test_unchanged_statements_pass_every_scenario(scenario: Scenario, make_setup: Callable[..., ScenarioSetup]) -> None:
    scenario(make_setup())


@pytest.mark.contract("L5", "Q12", "P2", "P9")
@each_mutant(MUTANTS)
def test_a_statement_without_its_condition_fails_a_scenario(
    mutant: Mutant, dialect: str, make_setup: Callable[..., ScenarioSetup]
) -> None:
    mutant.is_noticed(dialect, make_setup)


@on_both
def test_a_renewal_that_keeps_the_expired_mark_fails_a_scenario(
    dialect: str, make_setup: Callable[..., ScenarioSetup]
) -> None:
    column = "l.expired_seen_at" if dialect == "postgres" else "expired_seen_at"
    kept = broken(dialect, "renew_leases", "expired_seen_at = null", f"expired_seen_at = {column}")
    with pytest.raises(AssertionError):
        a_renewal_restarts_the_wait(make_setup(kept))


@on_both
def test_events_of_a_stale_claim_are_dropped(make_setup: Callable[..., ScenarioSetup]) -> None:
    """Events of a stale claim are not stored, and those of the current claim are."""
    on = make_setup()
    run = on.submit()
    old = on.claim("a")
    new = on.claimed_again(run, "a")
    event_buffer = EventBuffer("a")
    for claim in (new, old):
        event_buffer.add(claim.lease, "PROGRESS", {"claim": claim.lease.claim}, at=on.clock.now())
    on.hf.do(lambda tx: event_buffer.write(tx, event_buffer.take()))
    stored: list[Event] = [event for event in on.hf.timeline(run) if event.kind == "PROGRESS"]
    assert [event.claim for event in stored] == [new.lease.claim]
