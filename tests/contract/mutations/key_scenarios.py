"""Scenarios of keys and key locks; each passes with the unchanged statements."""

from __future__ import annotations

from tests.contract.mutations.scenario_setup import ScenarioSetup

from holdfast.orchestrator import promote


def a_held_key_lock_is_not_given_to_another_run(on: ScenarioSetup) -> None:
    first = on.submit("k")
    second = on.submit("k")
    on.do("hand_over_key_locks", rows=[{"run_key": "k", "key_number": 1, "run_id": second}])
    assert on.holder_of("k") == first


def a_key_lock_is_given_to_its_own_run(on: ScenarioSetup) -> None:
    on.submit("other")
    on.manual.worker("a").finish(on.claim("a"))
    first = on.submit("k")
    on.manual.worker("a").finish(on.claim("a"))
    second = on.submit("k")
    on.manual.orchestrate()
    on.submit("third")
    assert on.place(first) == "outcomes"
    assert on.holder_of("k") == second


def a_held_key_lock_is_not_deleted(on: ScenarioSetup) -> None:
    run = on.submit("k")
    on.do("delete_open_key_locks", rows=[{"run_key": "k", "key_number": 1}])
    assert on.holder_of("k") == run


def a_key_lock_beyond_the_limit_is_not_given(on: ScenarioSetup) -> None:
    many = [on.submit("k", key_limit=2) for _ in range(2)]
    on.manual.orchestrate()
    claims = {claim.lease.entry.key_number: claim for claim in on.manual.worker("a").claim(limit=2)}
    careful = on.submit("k")
    on.manual.orchestrate()
    on.manual.worker("a").finish(claims[2])
    on.manual.orchestrate()
    assert sorted(many) == sorted(claim.lease.run_id for claim in claims.values())
    assert on.place(careful) == "waits"


def a_turn_is_given_by_key_number(on: ScenarioSetup) -> None:
    for _ in range(4):
        on.submit("k", key_limit=2)
    on.manual.orchestrate()
    claims = {claim.lease.entry.key_number: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.manual.worker("a").finish(claims[1])
    on.manual.worker("a").finish(claims[2])
    on.manual.orchestrate()
    assert {claim.lease.entry.key_number for claim in on.manual.worker("a").claim(limit=3)} == {1, 2}
    assert on.hf.verify() == []


def a_check_flag_stays_while_a_key_lock_within_the_limit_is_free(on: ScenarioSetup) -> None:
    for _ in range(2):
        on.submit("k", key_limit=2)
    on.manual.orchestrate()
    claims = {claim.lease.entry.key_number: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.manual.worker("a").finish(claims[1])
    on.manual.orchestrate()
    careful = on.joined("k")
    on.do("mark_checked", ids=[careful])
    assert on.is_marked_for_check(careful)


def a_finish_frees_only_its_own_key(on: ScenarioSetup) -> None:
    first = on.submit("one")
    second = on.submit("two")
    claims = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.manual.worker("a").finish(claims[first])
    assert (on.holder_of("one"), on.holder_of("two")) == (None, second)


def a_key_with_a_due_waiting_run_is_not_taken(on: ScenarioSetup) -> None:
    on.joined("k")
    younger = on.submit("k")
    assert on.place(younger) == "waits"


def a_key_whose_waiting_run_has_become_due_is_not_taken(on: ScenarioSetup) -> None:
    on.submit("k", delay=10)
    on.clock.advance(11)
    younger = on.submit("k")
    assert on.place(younger) == "waits"


def a_key_of_a_delayed_run_is_free(on: ScenarioSetup) -> None:
    on.submit("k", delay=10)
    assert on.place(on.submit("k")) == "ready"


def a_key_of_a_run_with_open_dependencies_is_free(on: ScenarioSetup) -> None:
    needed = on.submit()
    on.submit("k", depends_on=[needed])
    assert on.place(on.submit("k")) == "ready"


def a_key_is_not_blocked_by_a_run_that_waits_for_another_key(on: ScenarioSetup) -> None:
    on.joined("other")
    assert on.place(on.submit("k")) == "ready"


def a_turn_is_not_given_before_the_due_time(on: ScenarioSetup) -> None:
    held = on.submit("k")
    later = on.submit("k", delay=10)
    on.manual.worker("a").finish(on.claim("a"))
    on.manual.orchestrate()
    assert (on.place(held), on.place(later)) == ("outcomes", "waits")


def a_turn_is_not_given_before_the_dependencies_are_met(on: ScenarioSetup) -> None:
    needed = on.submit(queue="elsewhere")
    needy = on.submit("k", depends_on=[needed])
    on.submit("k")
    on.manual.worker("a").finish(on.claim("a"))
    on.manual.orchestrate()
    assert on.place(needy) == "waits"


def a_check_flag_stays_while_the_key_is_free(on: ScenarioSetup) -> None:
    run = on.joined("k")
    on.hf.do(lambda tx: promote.check_waiting(tx, limit=10))
    on.hf.do(lambda tx: promote.mark_checked(tx, limit=10))
    assert on.is_marked_for_check(run)
