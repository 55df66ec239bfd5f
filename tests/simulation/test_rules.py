"""Undo each rule of the protocol that shows itself at the borders of transactions: the simulation must find it.

A rule is undone by replacing one function or one statement; within so many seeds at least one history must go wrong.
Where a rule is about what two open transactions do to each other, PostgreSQL shows it, in a test of its own.

Not here, because nothing can be undone in this design: 5 (outcome and hold change in one transaction: one verb does
both), 10 (a deferred SQLite transaction: `test_joining`), 16 (a build is replaced by compare-and-swap: two open
transactions again, as in `test_mutations`), 18 (seats are counted under a lock: the same), 25 (retention: a history is
too short for it), 20 (`solo` and `exclusive` are locks of the operating system and of a row: `test_taking_over`), 22
(the order of tables: deadlocks need two open transactions, as in rule 21), 23 (no foreign keys: a matter of bytes), 24
(a floor for claims: a matter of speed).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.simulation.database import sqlite_database
from tests.simulation.world import Odds, World

from holdfast import Holdfast, StoreBusy, Worker, leases, outcomes, rates, ready, runs, waits
from holdfast.ids import Ids
from holdfast.leases import Lease
from holdfast.orchestrator import asks, expand, promote, recover, stop
from holdfast.orchestrator.loop import Orchestrator
from holdfast.outcomes import Succeeded
from holdfast.policies import Policy
from holdfast.store.dialects.base import Conflict
from holdfast.store.queries import Queries, sources
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.submissions import Submission
from holdfast.testing import FakeClock, Manual
from holdfast.tickets import Ticket
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.loop import Cycle
from holdfast.worker.running import Hand, Running
from holdfast.worker.watch import Watch

SEEDS = 40
PLAIN = Odds(features=0)
"""The rules of runs, keys and needs show themselves best where there is nothing else."""
SETTLING = Odds(features=0, clock_step=0, settle_for=150)
"""For what is found because it never ends: a clock that does not jump back need not be waited for."""
FEATURES = Odds(clock_step=0, settle_for=150)
Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.timeout(180)


def found(
    odds: Odds | None = None, *, replaced: dict[str, str] | None = None, seeds: int = SEEDS, first: int = 1
) -> str | None:
    """The first thing that goes wrong in so many histories; `first` is a seed that was seen to show it."""
    for seed in range(first, first + seeds):
        with sqlite_database(replaced) as database:
            failure = World(seed, database, odds=odds or PLAIN).run()
        if failure is not None:
            return failure.problem
    return None


# Moves


def slow(verb: Callable[[Transaction, list[Any]], int], statement: str) -> Callable[..., int]:
    """A promoter that acts on what an earlier transaction saw."""
    seen: list[Any] = []

    def act(tx: Transaction, *, limit: int) -> int:
        rows, seen[:] = list(seen), tx.all(statement, now=tx.now, limit=limit)
        return verb(tx, rows)

    return act


def move_what_the_delete_returned(tx: Transaction, rows: list[Any]) -> int:
    still_due = {row["run_id"] for row in tx.all("find_due", now=tx.now, limit=1000)}
    rows = [row for row in rows if row["run_id"] in still_due]
    keyless = [row["run_id"] for row in rows if row["key"] is None]
    moved = waits.remove(tx, keyless) if keyless else []
    ready.put(tx, moved)
    keyed = [row["run_id"] for row in rows if row["key"] is not None]
    if keyed:
        held = promote._holding(tx, keyed)
        promote._let_go(tx, sorted(held), held)
        tx.run("come_due", ids=sorted(set(keyed) - held.keys()))
    return len(rows)


def move_what_was_seen(tx: Transaction, rows: list[Any]) -> int:
    for row in rows:
        if row["key"] is None:
            waits.remove(tx, [row["run_id"]])
            ready.put(tx, [Ticket(run_id=row["run_id"], job="work", queue="default", rank=0, key=None)])
    return move_what_the_delete_returned(tx, [row for row in rows if row["key"] is not None])


SLOW_WORLD = Odds(features=0, crash=0, pause=0, clock_step=0, shutdown=0)


def test_rule_1_a_slow_promoter_does_no_harm_if_it_moves_what_its_delete_returned(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "due", slow(move_what_the_delete_returned, "find_due"))
    assert found(SLOW_WORLD, seeds=5) is None


def test_rule_1_undone_a_run_is_in_two_places(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "due", slow(move_what_was_seen, "find_due"))
    assert found(SLOW_WORLD) is not None


def slow_at_needs(met: Callable[[Transaction, list[Any]], object]) -> Callable[..., None]:
    """An orchestrator that acts on the needs that an earlier transaction saw."""
    seen: list[Any] = []

    def needs_after(tx: Transaction, cursor: tuple[str, str], *, limit: int) -> None:
        rows = tx.all("find_needs_after", needed="", run_id="", limit=limit)
        earlier, seen[:] = list(seen), [row for row in rows if row["state"] is not None]
        met(tx, earlier)

    return needs_after


def count_what_was_seen(tx: Transaction, met: list[Any]) -> None:
    tx.all("delete_needs", rows=[{"needed": row["needed"], "run_id": row["run_id"]} for row in met])
    promote.subtract(tx, Counter(row["run_id"] for row in met), bad={})


def test_rule_2_a_slow_orchestrator_does_no_harm_if_it_counts_what_its_delete_returned(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "needs_after", slow_at_needs(promote._met))
    assert found(SLOW_WORLD, seeds=5) is None


def test_rule_2_undone_needs_are_miscounted(monkeypatch: Patch) -> None:
    """Counting what was seen, not what the DELETE returned: two orchestrators subtract the same need."""
    monkeypatch.setattr(promote, "needs_after", slow_at_needs(count_what_was_seen))
    assert "needs say" in (found(SLOW_WORLD) or "")


def test_rule_3_undone_a_delayed_run_is_ready_before_its_time(monkeypatch: Patch) -> None:
    place = runs.place
    monkeypatch.setattr(
        runs, "place", lambda tx, these, **more: place(tx, [replace(s, due_at=None) for s in these], **more)
    )
    assert "before its time" in (found() or "")


def test_rule_4_undone_a_worker_claims_more_than_it_has_places_for(monkeypatch: Patch) -> None:
    claim = leases.claim

    def greedy(tx: Transaction, queues: Sequence[str], *, limit: int, **given: Any) -> list[leases.Claim]:
        return claim(tx, queues, limit=limit + 3, **given)

    monkeypatch.setattr(leases, "claim", greedy)
    assert "places" in (found() or "")


def test_rule_4_undone_an_attempt_is_used_again(monkeypatch: Patch) -> None:
    put = ready.put
    monkeypatch.setattr(
        ready, "put", lambda tx, tickets: put(tx, [t.changed(attempt=max(0, t.attempt - 1)) for t in tickets])
    )
    assert "attempt" in (found() or "")


# Keys

OPEN = "set run_id = null"


def test_rule_6_undone_a_hold_that_is_deleted_leaves_its_waiters_alone() -> None:
    text = sources("sqlite")["open_holds"]
    assert OPEN in text
    deleting = text.replace("update holdfast_holds", "delete from holdfast_holds").replace(OPEN, "")
    assert found(SETTLING, replaced={"open_holds": deleting}) is not None


def test_rule_6_undone_a_submitter_that_does_not_look_for_waiters_overtakes_them() -> None:
    text = sources("sqlite")["take_holds"]
    assert "where not exists (" in text
    blind = text.replace("where not exists (", "where true or exists (")
    crowded = Odds(features=0, clients=4, operations=12)
    assert "overtook" in (found(crowded, replaced={"take_holds": blind}, first=18) or "")


def test_rule_7_undone_a_turn_is_given_to_a_younger_run_than_the_oldest_due_one() -> None:
    text = sources("sqlite")["find_turns"]
    youngest = text.replace("min(", "max(").replace("order by w.run_id", "order by w.run_id desc")
    assert "min(" in text
    assert "overtook" in (found(replaced={"find_turns": youngest}) or "")


def test_rule_7_undone_who_has_just_come_due_is_overtaken() -> None:
    """Due is who is due by the clock, whether an orchestrator has noticed it or not."""
    text = sources("sqlite")["find_turns"]
    assert "w.due_at <= :now" in text
    noticed_only = text.replace("w.due_at <= :now", "(w.due_at <= :now and 1 = 0)")
    busy = Odds(features=0, clients=3, operations=12, stall=0.05, crash=0.01)
    assert "overtook" in (found(busy, replaced={"find_turns": noticed_only}) or "")


def test_rule_7_undone_a_strict_run_loses_its_key_with_its_worker(monkeypatch: Patch) -> None:
    decide = recover.decide

    def lax(tx: Transaction, lease: Lease, policy: Policy, **given: Any) -> Any:
        return decide(tx, lease, replace(policy, key_order="due"), **given)

    monkeypatch.setattr(recover, "decide", lax)
    assert "lost its key" in (found(Odds(features=0, crash=0.01), first=5) or "")


# Wake-ups


def test_rule_11_every_ring_may_be_lost() -> None:
    """A ring is for speed only: the ticks and the looks find everything."""
    assert found(Odds(ring_lost=1.0), seeds=5) is None


def test_rule_11_undone_a_look_that_is_never_set_leaves_runs_waiting(monkeypatch: Patch) -> None:
    put = waits.put
    monkeypatch.setattr(waits, "put", lambda tx, waiting: put(tx, [replace(wait, look=False) for wait in waiting]))
    assert "never end" in (found(SETTLING) or "")


def test_rule_11_undone_a_look_that_is_cleared_too_early_leaves_runs_waiting(monkeypatch: Patch) -> None:
    """Cleared by who has just seen the row, instead of in a later snapshot and only if it has to wait."""
    text = sources("sqlite")["clear_looks"]
    head, _, _ = text.partition("and (\n")
    assert head != text
    looks = promote.looks

    def early(tx: Transaction, *, limit: int) -> int:
        promote.seen(tx, limit=limit)
        return looks(tx, limit=limit)

    monkeypatch.setattr(promote, "looks", early)
    assert "never end" in (found(SETTLING, replaced={"clear_looks": head}) or "")


def test_rule_12_undone_a_lost_ring_leaves_who_needs_the_run_waiting(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "needs_after", lambda tx, cursor, *, limit: None)
    assert "never end" in (found(replace(SETTLING, ring_lost=0.5, operations=12)) or "")


# Ends


def test_rule_17_undone_a_stage_that_is_let_go_before_its_segments_are_made_comes_to_nothing(
    monkeypatch: Patch,
) -> None:
    def is_free(row: dict[str, Any]) -> bool:
        return bool(row["missing"] == 0 and row["due_at"] is None)

    monkeypatch.setattr(promote, "_is_free", is_free)
    assert found(FEATURES) is not None


def test_rule_17_undone_a_stage_that_is_not_expanded_never_ends(monkeypatch: Patch) -> None:
    monkeypatch.setattr(expand, "stages", lambda tx, *, limit: 0)
    assert "never end" in (found(FEATURES) or "")


def test_rule_9_undone_a_build_that_no_orchestrator_gets_is_waited_for_for_ever(monkeypatch: Patch) -> None:
    monkeypatch.setattr(asks, "settle", lambda tx, *, limit: 0)
    assert "never end" in (found(FEATURES, first=10) or "")


def test_children_of_what_ended_badly_are_stopped_or_the_oracle_says_so(monkeypatch: Patch) -> None:
    monkeypatch.setattr(stop, "children", lambda tx, *, limit: 0)
    assert "errand undone" in (found(FEATURES) or "")


def test_a_rate_that_no_claim_asks_is_broken(monkeypatch: Patch) -> None:
    monkeypatch.setattr(rates, "judge", lambda tx, runs: rates.Judgement())
    assert "starts of a rate" in (found(FEATURES) or "")


def test_rule_13_undone_a_crash_erases_an_accepted_cancel(monkeypatch: Patch) -> None:
    decide = recover.decide

    def forgetful(tx: Transaction, lease: Lease, policy: Policy, **given: Any) -> Any:
        return decide(tx, replace(lease, cancel_requested_at=None), policy, **given)

    monkeypatch.setattr(recover, "decide", forgetful)
    assert "cancelled" in (found(Odds(features=0, crash=0.01), first=10) or "")


def test_rule_13_undone_a_retry_erases_an_accepted_cancel(monkeypatch: Patch) -> None:
    monkeypatch.setattr(outcomes, "_heeding_cancel", lambda lease, outcome: outcome)
    assert "cancelled" in (found(Odds(features=0, clients=3), first=5) or "")


# Clocks


def test_rule_19_undone_a_clock_that_jumps_takes_runs_from_workers_that_do_them(monkeypatch: Patch) -> None:
    monkeypatch.setattr(Orchestrator, "_can_judge", lambda self: True)
    assert found(Odds(features=0, clock_step=0.02)) is not None


def test_rule_19_undone_a_judge_that_does_not_follow_the_clock_takes_runs_from_workers(monkeypatch: Patch) -> None:
    """Its own clock has not jumped, because it has not asked."""
    monkeypatch.setattr(Store, "follow_clock", lambda self: None)
    assert found(Odds(features=0, clock_step=0.02)) is not None


def test_rule_19_undone_a_claim_that_is_answered_after_its_lease_is_started(monkeypatch: Patch) -> None:
    too_late = Watch.too_late
    monkeypatch.setattr(
        Watch, "too_late", lambda self, running: running in self._hand.all() and too_late(self, running)
    )
    stalling = Odds(features=0, stall=0.2, crash=0, pause=0, clock_step=0, shutdown=0, operations=12, chaos_for=90)
    assert found(replace(stalling, workers=4, concurrency=2)) is not None


def left_after_a_jump(url: str) -> timedelta:
    """How much is left of a lease that was renewed after the clock jumped over the run's deadline."""
    clock = FakeClock()
    with Holdfast(url, clock=clock, ids=Ids(seed=1)) as hf:
        job = hf.job(name="free", timeout=60)(lambda: None)
        run = job.submit()
        [claim] = Manual(hf).worker("a").claim()
        now = clock.elapsed()
        hand = Hand()
        hand.take(Running(claim=claim, job=job, lease_until=now + 15, deadline=now + 60))
        clock.step(timedelta(hours=1))
        Heartbeat(hf.store, hand, hf.settings, clock, holder="a").beat()
        expires_at = hf.snapshot(run.id).expires_at
    assert expires_at is not None
    return expires_at - clock.now()


def test_rule_14_a_renewal_goes_by_the_time_that_is_left(sqlite_url: str) -> None:
    assert left_after_a_jump(sqlite_url) == timedelta(seconds=15)


def test_rule_14_undone_a_lease_renewed_up_to_a_deadline_that_has_jumped_is_over_at_once(
    sqlite_url: str, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(Heartbeat, "_as_of_now", lambda self, running: running.lease)
    assert left_after_a_jump(sqlite_url) < timedelta(0)


# What two open transactions do to each other: PostgreSQL


@pytest.fixture
def on_postgres(postgres_url: str) -> Iterator[Holdfast]:
    with Holdfast(postgres_url, clock=FakeClock(), ids=Ids(seed=1), busy_timeout=0.3) as hf:
        hf.job(name="work", key="key")(work)
        yield hf


def work(key: str) -> None: ...


def submit_twice(hf: Holdfast, url: str) -> None:
    """A caller submits in its own transaction, and while that is open someone else submits for the same key."""
    with psycopg.connect(url) as caller:
        hf.jobs["work"].using(connection=caller).submit(key="k")
        hf.jobs["work"].submit(key="k")


def test_rule_8_a_callers_open_transaction_blocks_no_other_submitter(on_postgres: Holdfast, postgres_url: str) -> None:
    submit_twice(on_postgres, postgres_url)
    Manual(on_postgres).orchestrate()
    # The caller's run was not there yet when the other one took the key; it is next.
    assert [run.place for run in on_postgres.list_runs()] == ["ready", "waits"]


def test_rule_8_undone_every_other_submitter_of_the_key_is_blocked(
    on_postgres: Holdfast, postgres_url: str, monkeypatch: Patch
) -> None:
    place = runs.place

    def as_if_owned(tx: Transaction, submissions: Sequence[Submission], **more: Any) -> None:
        tx.owned = True
        place(tx, submissions, **more)

    monkeypatch.setattr(runs, "place", as_if_owned)
    with pytest.raises(StoreBusy):
        submit_twice(on_postgres, postgres_url)


def submit_the_same_again(hf: Holdfast, url: str) -> tuple[str, str, int]:
    """The same idempotency key, once more, inside a caller's transaction that goes on afterwards."""
    first = hf.jobs["work"].using(idempotency_key="once").submit(key="k")
    with psycopg.connect(url) as caller:
        again = hf.jobs["work"].using(idempotency_key="once", connection=caller).submit(key="k")
        row = caller.execute("select 42").fetchone()
    assert row is not None
    return first.id, again.id, row[0]


def test_rule_9_a_callers_transaction_survives_a_submission_that_was_there(
    on_postgres: Holdfast, postgres_url: str
) -> None:
    first, again, answer = submit_the_same_again(on_postgres, postgres_url)
    assert (first, answer) == (again, 42)


def test_rule_9_undone_the_callers_own_work_is_aborted(
    on_postgres: Holdfast, postgres_url: str, monkeypatch: Patch
) -> None:
    """A violation that is caught has already aborted the transaction on PostgreSQL."""
    text = sources("postgres")["insert_runs"]
    assert "on conflict do nothing" in text
    replaced = {"insert_runs": text.replace("on conflict do nothing", "")}
    on_postgres.store.queries = Queries("postgres", style="pyformat", replaced=replaced)
    put = Transaction.all

    def catching(tx: Transaction, name: str, /, **values: Any) -> Any:
        try:
            return put(tx, name, **values)
        except psycopg.errors.UniqueViolation:
            return []

    monkeypatch.setattr(Transaction, "all", catching)
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        submit_the_same_again(on_postgres, postgres_url)


# A result that the database refuses


@pytest.fixture
def with_a_bad_result(postgres_url: str) -> Iterator[tuple[Holdfast, Any, Any]]:
    with Holdfast(postgres_url, tick=0.05, lease=3) as hf:

        @hf.job(name="good")
        def good() -> str:
            return "fine"

        @hf.job(name="bad")
        def bad() -> str:
            return "fine"

        yield hf, good, bad


def refuse_bad_outcomes(monkeypatch: Patch, hf: Holdfast) -> None:
    """Like a character that PostgreSQL can't store, whatever the codec does about it before."""
    end = outcomes.end

    def refusing(tx: Transaction, endings: Any) -> None:
        endings = list(endings)
        end(tx, endings)
        if any(one.ticket.job == "bad" and isinstance(one.outcome, Succeeded) for one in endings):
            tx.all("announce", names="a zero byte: \x00")

    monkeypatch.setattr(outcomes, "end", refusing)


def test_rule_15_one_result_that_cant_be_stored_fails_its_own_run_only(
    with_a_bad_result: tuple[Holdfast, Any, Any], monkeypatch: Patch
) -> None:
    hf, good, bad = with_a_bad_result
    refuse_bad_outcomes(monkeypatch, hf)
    submitted = [job.submit() for job in (good, bad, good, bad, good)]
    with Worker(hf, drain=True) as worker:
        worker.join(timeout=30)
    states = [hf.snapshot(run.id) for run in submitted]
    assert [one.state for one in states] == ["succeeded", "failed", "succeeded", "failed", "succeeded"]
    assert {one.failure_type for one in states if one.state == "failed"} == {"RESULT_NOT_STORABLE"}


def test_rule_15_undone_one_bad_result_holds_up_its_whole_batch(
    with_a_bad_result: tuple[Holdfast, Any, Any], monkeypatch: Patch
) -> None:
    hf, _, bad = with_a_bad_result
    refuse_bad_outcomes(monkeypatch, hf)

    def no_halving(self: Cycle, done: Any) -> None:
        raise RuntimeError("the batch can't be written")

    monkeypatch.setattr(Cycle, "_finish_alone", no_halving)
    monkeypatch.setattr("holdfast.worker.loop.log.exception", lambda *_: None)
    run = bad.submit()
    worker = Worker(hf, drain=True)
    worker.start()
    with pytest.raises(RuntimeError, match="can't be written"):
        worker.join(timeout=30)
    assert hf.snapshot(run.id).state == "running"


# Locks


def renew_against_ordered_locks(hf: Holdfast, url: str, monkeypatch: Patch) -> int:
    """Renew two leases while someone locks them one after the other, in the order of their keys; the deadlocks."""
    for _ in range(2):
        hf.jobs["free"].submit()
    held: list[Lease] = [claim.lease for claim in Manual(hf).worker("a").claim(limit=2)]
    first, second = sorted(lease.run_id for lease in held)
    deadlocks: list[Exception] = []
    translate = hf.store.dialect.translate

    def counting(error: Exception) -> Exception:
        translated = translate(error)
        if isinstance(translated, Conflict):
            deadlocks.append(error)
        return translated

    monkeypatch.setattr(hf.store.dialect, "translate", counting)
    settings = hf.settings
    renewing = threading.Thread(
        target=lambda: hf.do(
            lambda tx: leases.renew(tx, held, holder="a", lease_for=settings.lease, kill_grace=settings.kill_grace)
        )
    )
    lock = "select 1 from holdfast_leases where run_id = %s for update"
    with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as onlooker:
        other.execute(lock, [first])
        renewing.start()
        for _ in range(500):
            row = onlooker.execute("select count(*) from pg_stat_activity where wait_event_type = 'Lock'").fetchone()
            if row is not None and row[0]:
                break
            threading.Event().wait(0.01)
        try:
            other.execute(lock, [second])
        except psycopg.errors.DeadlockDetected as error:
            deadlocks.append(error)
    renewing.join(timeout=20)
    return len(deadlocks)


@pytest.fixture
def patient(postgres_url: str) -> Iterator[Holdfast]:
    with Holdfast(postgres_url, clock=FakeClock(), ids=Ids(seed=1)) as hf:
        hf.job(name="free")(lambda: None)
        yield hf


def test_rule_21_whoever_locks_in_order_meets_no_deadlock(
    patient: Holdfast, postgres_url: str, monkeypatch: Patch
) -> None:
    assert renew_against_ordered_locks(patient, postgres_url, monkeypatch) == 0


def test_rule_21_undone_a_renewal_in_another_order_deadlocks(
    patient: Holdfast, postgres_url: str, monkeypatch: Patch
) -> None:
    text = sources("postgres")["renew_leases"]
    assert "order by l.run_id" in text
    replaced = {"renew_leases": text.replace("order by l.run_id", "order by l.run_id desc")}
    patient.store.queries = Queries("postgres", style="pyformat", replaced=replaced)
    assert renew_against_ordered_locks(patient, postgres_url, monkeypatch) > 0
