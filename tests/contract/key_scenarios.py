"""Scenarios of keys, their holds and their turns: each passes with the statements as they are."""

from __future__ import annotations

from tests.contract.stage import Stage

from holdfast.orchestrator import promote


def a_held_key_is_not_given_away(on: Stage) -> None:
    first = on.submit("k")
    second = on.submit("k")
    on.do("give_holds", rows=[{"run_key": "k", "number": 1, "run_id": second}])
    assert on.holder_of("k") == first


def a_key_is_given_to_its_own_run(on: Stage) -> None:
    on.submit("other")
    on.manual.worker("a").finish(on.claim("a"))
    first = on.submit("k")
    on.manual.worker("a").finish(on.claim("a"))
    second = on.submit("k")
    on.manual.orchestrate()
    on.submit("third")
    assert on.place(first) == "outcomes"
    assert on.holder_of("k") == second


def a_held_key_is_not_removed(on: Stage) -> None:
    run = on.submit("k")
    on.do("delete_open_holds", rows=[{"run_key": "k", "number": 1}])
    assert on.holder_of("k") == run


def a_hold_beyond_its_limit_is_not_given(on: Stage) -> None:
    many = [on.submit("k", key_limit=2) for _ in range(2)]
    on.manual.orchestrate()
    claims = {claim.lease.ticket.number: claim for claim in on.manual.worker("a").claim(limit=2)}
    careful = on.submit("k")
    on.manual.orchestrate()
    on.manual.worker("a").finish(claims[2])
    on.manual.orchestrate()
    assert sorted(many) == sorted(claim.lease.run_id for claim in claims.values())
    assert on.place(careful) == "waits"


def a_turn_is_given_by_its_number(on: Stage) -> None:
    for _ in range(4):
        on.submit("k", key_limit=2)
    on.manual.orchestrate()
    claims = {claim.lease.ticket.number: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.manual.worker("a").finish(claims[1])
    on.manual.worker("a").finish(claims[2])
    on.manual.orchestrate()
    assert {claim.lease.ticket.number for claim in on.manual.worker("a").claim(limit=3)} == {1, 2}
    assert on.hf.verify() == []


def a_look_stays_while_a_hold_within_its_limit_is_free(on: Stage) -> None:
    for _ in range(2):
        on.submit("k", key_limit=2)
    on.manual.orchestrate()
    claims = {claim.lease.ticket.number: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.manual.worker("a").finish(claims[1])
    on.manual.orchestrate()
    careful = on.joined("k")
    on.do("clear_looks", ids=[careful])
    assert on.look(careful)


def a_finish_opens_its_own_key_only(on: Stage) -> None:
    first = on.submit("one")
    second = on.submit("two")
    claims = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.manual.worker("a").finish(claims[first])
    assert (on.holder_of("one"), on.holder_of("two")) == (None, second)


def a_key_that_a_due_run_waits_for_is_not_taken(on: Stage) -> None:
    on.joined("k")
    younger = on.submit("k")
    assert on.place(younger) == "waits"


def a_key_whose_waiter_has_come_due_is_not_taken(on: Stage) -> None:
    on.submit("k", delay=10)
    on.clock.advance(11)
    younger = on.submit("k")
    assert on.place(younger) == "waits"


def a_key_that_a_run_wants_later_is_free(on: Stage) -> None:
    on.submit("k", delay=10)
    assert on.place(on.submit("k")) == "ready"


def a_key_that_a_needy_run_wants_is_free(on: Stage) -> None:
    needed = on.submit()
    on.submit("k", after=[needed])
    assert on.place(on.submit("k")) == "ready"


def a_key_is_not_blocked_by_who_waits_for_another(on: Stage) -> None:
    on.joined("other")
    assert on.place(on.submit("k")) == "ready"


def a_turn_is_not_given_before_its_time(on: Stage) -> None:
    held = on.submit("k")
    later = on.submit("k", delay=10)
    on.manual.worker("a").finish(on.claim("a"))
    on.manual.orchestrate()
    assert (on.place(held), on.place(later)) == ("outcomes", "waits")


def a_turn_is_not_given_before_its_needs(on: Stage) -> None:
    needed = on.submit(queue="elsewhere")
    needy = on.submit("k", after=[needed])
    on.submit("k")
    on.manual.worker("a").finish(on.claim("a"))
    on.manual.orchestrate()
    assert on.place(needy) == "waits"


def a_look_stays_while_the_key_is_open(on: Stage) -> None:
    run = on.joined("k")
    on.hf.do(lambda tx: promote.looks(tx, limit=10))
    on.hf.do(lambda tx: promote.seen(tx, limit=10))
    assert on.look(run)
