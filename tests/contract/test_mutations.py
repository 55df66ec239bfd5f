"""Drop each condition from the fenced statements in turn: a scenario that passes must fail.

A mutant is made from the statement as it is written, on each dialect. A condition that is not found fails the test, so
that a statement can't change and silently escape. The conditions of PostgreSQL's `locked` tables and of the outer
statement say the same twice (the first is for the order of locks); they are dropped together.

SQL Server's statements are written in other words and are not mutated here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Holdfast, LeaseLost, runs, stores, wishes, workers
from holdfast.events import Event
from holdfast.ids import Ids
from holdfast.leases import Claim, guard
from holdfast.orchestrator import promote, recover
from holdfast.outcomes import Succeeded, TryLater, finish
from holdfast.store.queries import Queries, sources
from holdfast.testing import FakeClock, Manual
from holdfast.worker.chronicle import Chronicle
from holdfast.workers import WorkerInfo

SOON = timedelta(seconds=1)


@dataclass
class Stage:
    """An engine, its clock, and what a scenario needs of them."""

    hf: Holdfast
    clock: FakeClock
    manual: Manual

    def __post_init__(self) -> None:
        self.job = self.hf.job(name="work", max_attempts=9)(lambda: None)
        self.other = self.hf.job(name="other")(lambda: None)
        self.build = self.hf.build(name="build")(lambda fingerprint: None)

    def submit(self, key: str | None = None, **options: Any) -> str:
        if key is not None:
            options["key"] = lambda: key
        return self.job.using(**options).submit().id

    def joined(self, key: str) -> str:
        """A run that waits for its turn, whose hold no one has taken yet."""
        with self.hf.store.transaction() as tx:
            tx.owned = False
            submission = self.job.submission(
                self.hf.ids.new(tx.now),
                self.job.using(key=lambda: key).options,
                (),
                {},
                now=tx.now,
            )
            [answer] = runs.submit(tx, [submission])
        assert isinstance(answer, str)
        return answer

    def claim(self, holder: str = "a") -> Claim:
        [claim] = self.manual.worker(holder).claim()
        return claim

    def claimed_again(self, run_id: str, holder: str) -> Claim:
        """The run's next attempt, after its worker was lost."""
        self.clock.advance(2 * self.hf.settings.lease)
        self.manual.orchestrate()
        claims = {claim.lease.run_id: claim for claim in self.manual.worker(holder).claim(limit=9)}
        return claims[run_id]

    def place(self, run_id: str) -> str | None:
        return self.hf.snapshot(run_id).place

    def look(self, run_id: str) -> bool:
        return run_id in {row["run_id"] for row in self.hf.read(lambda tx: tx.all("find_looks", limit=100))}

    def holder_of(self, key: str) -> str | None:
        found = self.hf.read(lambda tx: tx.one("find_holds", key=key))
        assert found is not None, f"no hold on {key}"
        held_by: str | None = found["run_id"]
        return held_by

    def do(self, name: str, **values: object) -> int:
        return self.hf.do(lambda tx: tx.run(name, **values))


# Scenarios: each passes with the statements as they are.


def another_holder_finishes_nothing(on: Stage) -> None:
    run = on.submit()
    claim = on.claim("a")
    lost = on.hf.do(lambda tx: finish(tx, [(claim.lease, Succeeded())], holder="b"))
    assert lost == {run}
    assert on.place(run) == "leases"


def an_older_attempt_of_the_same_holder_finishes_nothing(on: Stage) -> None:
    run = on.submit()
    old = on.claim("a")
    on.claimed_again(run, "a")
    lost = on.hf.do(lambda tx: finish(tx, [(old.lease, Succeeded())], holder="a"))
    assert lost == {run}
    assert on.place(run) == "leases"


def a_finish_touches_no_other_run(on: Stage) -> None:
    """Not even one whose attempt is that of another run in the same batch."""
    first, second = on.submit(), on.submit()
    stale = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.clock.advance(2 * on.hf.settings.lease)
    on.manual.orchestrate()
    fresh = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    done = [(fresh[first].lease, Succeeded()), (stale[second].lease, Succeeded())]
    lost = on.hf.do(lambda tx: finish(tx, done, holder="a"))
    assert lost == {second}
    assert (on.place(first), on.place(second)) == ("outcomes", "leases")


def another_holder_renews_nothing(on: Stage) -> None:
    on.submit()
    claim = on.claim("a")
    assert _renewed(on, claim, holder="b") is False


def an_older_attempt_renews_nothing(on: Stage) -> None:
    run = on.submit()
    old = on.claim("a")
    on.claimed_again(run, "a")
    assert _renewed(on, old, holder="a") is False


def a_renewal_touches_no_other_run(on: Stage) -> None:
    first, second = on.submit(), on.submit()
    claims = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    before = on.hf.snapshot(second).expires_at
    on.clock.advance(SOON)
    on.manual.worker("a").renew(claims[first])
    assert on.hf.snapshot(second).expires_at == before


def another_holder_guards_nothing(on: Stage) -> None:
    on.submit()
    claim = on.claim("a")
    assert on.hf.do(lambda tx: guard(tx, [claim.lease], holder="b")) == set()


def an_older_attempt_guards_nothing(on: Stage) -> None:
    run = on.submit()
    old = on.claim("a")
    on.claimed_again(run, "a")
    assert on.hf.do(lambda tx: guard(tx, [old.lease], holder="a")) == set()


def a_guard_is_for_its_own_run(on: Stage) -> None:
    first = on.submit()
    on.submit()
    claims = {claim.lease.run_id: claim for claim in on.manual.worker("a").claim(limit=2)}
    on.manual.worker("a").finish(claims[first])
    assert on.hf.do(lambda tx: guard(tx, [claims[first].lease], holder="a")) == set()


def a_lease_that_was_renewed_is_not_taken_away(on: Stage) -> None:
    """An orchestrator acts on what it saw; it may be slow."""
    run = on.submit(timeout=None)
    claim = on.claim("a")
    on.clock.advance(2 * on.hf.settings.lease)
    seen = on.hf.read(lambda tx: tx.all("find_all_leases", limit=10))
    on.manual.worker("a").renew(claim)
    assert on.hf.do(lambda tx: recover.take_away(tx, seen, because="it was seen expired")) == []
    assert on.place(run) == "leases"


def a_later_attempt_is_not_taken_away(on: Stage) -> None:
    """The same instant of expiry does not make it the same lease."""
    run = on.submit(timeout=None)
    claim = on.claim("a")
    seen = on.hf.read(lambda tx: tx.all("find_all_leases", limit=10))
    on.hf.do(lambda tx: finish(tx, [(claim.lease, TryLater("again", timedelta(0)))], holder="a"))
    on.manual.orchestrate()
    on.claim("a")
    assert on.hf.do(lambda tx: recover.take_away(tx, seen, because="it was seen expired")) == []
    assert on.place(run) == "leases"


def only_the_lease_that_was_seen_is_taken_away(on: Stage) -> None:
    first, second = on.submit(timeout=None), on.submit(timeout=None)
    on.manual.worker("a").claim(limit=2)
    seen = on.hf.read(lambda tx: tx.all("find_all_leases", limit=10))
    on.hf.do(lambda tx: recover.take_away(tx, [row for row in seen if row["run_id"] == first], because="seen"))
    assert (on.place(first), on.place(second)) == ("ready", "leases")


def a_lease_that_has_time_left_is_not_found_expired(on: Stage) -> None:
    run = on.submit()
    on.claim("a")
    on.clock.advance(SOON)
    on.manual.orchestrate()
    assert on.place(run) == "leases"


def a_held_key_is_not_given_away(on: Stage) -> None:
    first = on.submit("k")
    second = on.submit("k")
    on.do("give_holds", rows=[{"key": "k", "number": 1, "run_id": second}])
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
    on.do("delete_open_holds", rows=[{"key": "k", "number": 1}])
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


def a_run_is_not_due_before_its_needs(on: Stage) -> None:
    needed = on.submit(queue="elsewhere")
    needy = on.submit(after=[needed], delay=10)
    on.clock.advance(11)
    on.hf.do(lambda tx: promote.due(tx, limit=10))
    assert on.place(needy) == "waits"


def a_run_is_not_due_before_its_time(on: Stage) -> None:
    later = on.submit(delay=10)
    on.hf.do(lambda tx: promote.due(tx, limit=10))
    assert on.place(later) == "waits"


def a_look_stays_while_the_key_is_open(on: Stage) -> None:
    run = on.joined("k")
    on.hf.do(lambda tx: promote.looks(tx, limit=10))
    on.hf.do(lambda tx: promote.seen(tx, limit=10))
    assert on.look(run)


def a_look_stays_while_a_need_is_met(on: Stage) -> None:
    needed = on.submit()
    on.manual.worker("a").finish(on.claim("a"))
    needy = on.submit(after=[needed])
    on.hf.do(lambda tx: promote.seen(tx, limit=10))
    assert on.look(needy)


def a_cancel_stops_its_own_run_only(on: Stage) -> None:
    first, second = on.submit(), on.submit()
    on.manual.worker("a").claim(limit=2)
    on.hf.cancel(first)
    assert on.hf.snapshot(first).cancel_requested_at is not None
    assert on.hf.snapshot(second).cancel_requested_at is None


def a_live_worker_keeps_its_exclusive_name(on: Stage) -> None:
    assert _register(on, "one") is None
    assert _register(on, "two") == "one"


def a_worker_claims_only_jobs_that_it_knows(on: Stage) -> None:
    on.other.submit()
    assert on.manual.worker("a", jobs=["work"]).claim() == []


def a_worker_claims_only_from_its_queues(on: Stage) -> None:
    on.submit(queue="elsewhere")
    assert on.manual.worker("a").claim() == []


def _renewed(on: Stage, claim: Claim, *, holder: str) -> bool:
    try:
        on.manual.worker(holder).renew(claim)
    except LeaseLost:
        return False
    return True


def _register(on: Stage, name: str) -> str | None:
    info = WorkerInfo(
        id=name,
        host="host",
        pid=1,
        version="0",
        queues=["default"],
        jobs=["work"],
        concurrency=1,
        exclusive="only",
        started_at=on.clock.now(),
        seen_at=on.clock.now(),
        expires_at=on.clock.now() + on.hf.settings.lease,
        stopping=False,
    )
    holding = on.hf.do(lambda tx: workers.register(tx, info))
    return None if holding is None else holding.id


def one_of_two_who_saw_the_same_making_replaces_it(on: Stage) -> None:
    wish = on.build.of(fingerprint="f")
    seen = on.build.submit(fingerprint="f").id
    makings = [wishes.Making(wish, on.hf.ids.new(on.clock.now()), seen) for _ in range(2)]
    won = [on.hf.do(lambda tx, making=making: wishes.replace(tx, [making])) for making in makings]  # type: ignore[misc]
    assert won == [makings[:1], []]
    assert on.hf.builds.get(wish).run_id == makings[0].run_id


def what_was_made_anew_is_not_invalidated_by_who_saw_the_old(on: Stage) -> None:
    seen = on.hf.builds.get(on.build.submit(fingerprint="f").id)
    on.hf.builds.rebuild(seen)
    identity = {"job": seen.job, "scope": seen.scope, "fingerprint": seen.fingerprint}
    assert on.do("invalidate_build", **identity, run_id=seen.run_id, because="old", now=on.clock.now()) == 0


def a_cancelled_run_takes_back_its_own_asks_only(on: Stage) -> None:
    with on.hf.store.transaction() as tx:
        tx.owned = False
        options = on.job.using(after=[on.build.of(fingerprint="f")]).options
        asking = [on.job.submission(on.hf.ids.new(tx.now), options, (), {}, now=tx.now) for _ in range(2)]
        runs.submit(tx, asking)
    on.hf.cancel(asking[0].run_id)
    assert on.hf.verify() == []


# Mutants: the statement, the condition in each dialect's words, and the scenario that dies with it.

Scenario = Callable[[Stage], None]
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
    ("find_expired", r"l\.expires_at < :now", a_lease_that_has_time_left_is_not_found_expired),
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
    ("take_ready", r"y\.job (?:in|= any) ?\(.*?:jobs.*?\)+$", a_worker_claims_only_jobs_that_it_knows),
    ("take_ready", r"y\.queue = :queue", a_worker_claims_only_from_its_queues),
]

# They pass with the statements as they are; what they prove has no condition that can be dropped alone.
OTHERS: list[Scenario] = [
    a_renewal_touches_no_other_run,
    a_key_is_given_to_its_own_run,
    a_turn_is_given_by_its_number,
]

pytestmark = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def dialect(url: str) -> str:
    return "sqlite" if url.startswith("sqlite") else "postgres"


@pytest.fixture
def stage_of(url: str, dialect: str) -> Iterator[Callable[..., Stage]]:
    opened: list[Holdfast] = []

    def make(replaced: dict[str, str] | None = None) -> Stage:
        clock = FakeClock()
        hf = Holdfast(url, clock=clock, ids=Ids(seed=1))
        opened.append(hf)
        prefix = stores.prefix(hf.settings, hf._store.dialect)
        hf._store.queries = Queries(dialect, prefix=prefix, style=hf._store.dialect.style, replaced=replaced)
        return Stage(hf, clock, Manual(hf))

    yield make
    for hf in opened:
        hf.close()


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


def without(statement: str, condition: str, dialect: str) -> str:
    """The statement with the condition made true; its parameters stay, so that it is still called as before."""
    text = sources(dialect)[statement]
    dropped, count = re.subn(condition, _always_true, text, flags=re.MULTILINE)
    assert count, f"{dialect}/{statement}.sql has no condition like {condition!r} any more: mutate what it has now"
    return dropped


def _always_true(match: re.Match[str]) -> str:
    dropped = match[0]
    if dropped.startswith("not exists"):
        return "exists (select 1) or exists"
    parameters = re.findall(r":([a-z_]+)", dropped)
    if dropped.endswith(" or "):
        return ""
    if dropped.startswith(" or "):
        return " and :now = :now"
    return "(" + " and ".join(["1 = 1", *(f"(:{name} = :{name} or 1 = 1)" for name in parameters)]) + ")"


def test_events_of_a_stale_attempt_are_dropped(stage_of: Callable[..., Stage]) -> None:
    """What a lingering attempt tells is not written, and costs the attempt that runs nothing."""
    on = stage_of()
    run = on.submit()
    old = on.claim("a")
    new = on.claimed_again(run, "a")
    chronicle = Chronicle("a")
    for claim in (new, old):
        chronicle.tell(claim.lease, "PROGRESS", {"attempt": claim.lease.attempt}, at=on.clock.now())
    on.hf.do(lambda tx: chronicle.write(tx, chronicle.take()))
    told: list[Event] = [event for event in on.hf.story(run) if event.kind == "PROGRESS"]
    assert [event.attempt for event in told] == [new.lease.attempt]
