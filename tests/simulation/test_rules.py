"""Undo each rule of the protocol that shows itself at the borders of transactions: the simulation must find it.

A rule is undone by replacing one function or one statement; within so many seeds at least one history must go wrong.
Here are the rules of moves, keys and wake-ups; those of ends and clocks are in `test_rules_of_ends`. Where a rule is
about what two open transactions do to each other, PostgreSQL shows it, in `test_rules_of_transactions`.

Not here, because nothing can be undone in this design: 5 (outcome and hold change in one transaction: one verb does
both), 10 (a deferred SQLite transaction: `test_joining`), 16 (a build is replaced by compare-and-swap: two open
transactions again, as in `test_mutations`), 18 (seats are counted under a lock: the same), 25 (retention: a history is
too short for it), 20 (`solo` and `exclusive` are locks of the operating system and of a row: `test_taking_over`), 22
(the order of tables: deadlocks need two open transactions, as in rule 21), 23 (no foreign keys: a matter of bytes), 24
(a floor for claims: a matter of speed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.mutants.statements import broken
from tests.simulation.undoing import SETTLING, Patch, found
from tests.simulation.world import Odds

from holdfast.orchestrator import promote, recover
from holdfast.runs import ready, submit
from holdfast.runs.claim import Claim, claim_runs
from holdfast.runs.lease import Lease
from holdfast.runs.queue_entry import QueueEntry
from holdfast.runs.submit import place_runs
from holdfast.runs.waiting import add_waiting, take_waiting
from holdfast.store.transaction import Transaction
from holdfast.values.policies import Policy

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
    keyless = [row["run_id"] for row in rows if row["run_key"] is None]
    moved = take_waiting(tx, keyless) if keyless else []
    ready.put(tx, moved)
    keyed = [row["run_id"] for row in rows if row["run_key"] is not None]
    if keyed:
        held = promote._holding(tx, keyed)
        promote._let_go(tx, sorted(held), held)
        tx.run("come_due", ids=sorted(set(keyed) - held.keys()))
    return len(rows)


def move_what_was_seen(tx: Transaction, rows: list[Any]) -> int:
    for row in rows:
        if row["run_key"] is None:
            take_waiting(tx, [row["run_id"]])
            ready.put(tx, [QueueEntry(run_id=row["run_id"], job="work", queue="default", rank=0, key=None)])
    return move_what_the_delete_returned(tx, [row for row in rows if row["run_key"] is not None])


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
    place = place_runs
    monkeypatch.setattr(
        submit, "place_runs", lambda tx, these, **more: place(tx, [replace(s, due_at=None) for s in these], **more)
    )
    assert "before its time" in (found() or "")


def test_rule_4_undone_a_worker_claims_more_than_it_has_places_for(monkeypatch: Patch) -> None:
    claim = claim_runs

    def greedy(tx: Transaction, queues: Sequence[str], *, limit: int, **given: Any) -> list[Claim]:
        return claim(tx, queues, limit=limit + 3, **given)

    monkeypatch.setattr("holdfast.worker.loop.claim_runs", greedy)
    assert "places" in (found() or "")


def test_rule_4_undone_an_attempt_is_used_again(monkeypatch: Patch) -> None:
    put = ready.put
    monkeypatch.setattr(
        ready, "put", lambda tx, tickets: put(tx, [t.changed(attempt=max(0, t.attempt - 1)) for t in tickets])
    )
    assert "attempt" in (found() or "")


# Keys


def test_rule_6_undone_a_hold_that_is_deleted_leaves_its_waiters_alone() -> None:
    deleting = broken("sqlite", "open_holds", r"update (holdfast_holds\s+)set run_id = null", r"delete from \1")
    assert found(SETTLING, replaced=deleting) is not None


def test_rule_6_undone_a_submitter_that_does_not_look_for_waiters_overtakes_them() -> None:
    blind = broken("sqlite", "take_holds", "where not exists", "where true or exists")
    crowded = Odds(features=0, clients=4, operations=12)
    assert "overtook" in (found(crowded, replaced=blind, first=18) or "")


def test_rule_7_undone_a_turn_is_given_to_a_younger_run_than_the_oldest_due_one() -> None:
    youngest = broken("sqlite", "find_turns", r"min\(", "max(")
    assert "overtook" in (found(replaced=youngest) or "")


def test_rule_7_undone_who_has_just_come_due_is_overtaken() -> None:
    """Due is who is due by the clock, whether an orchestrator has noticed it or not."""
    noticed_only = broken("sqlite", "find_turns", r"w\.due_at <= :now", r"(\g<0> and 1 = 0)")
    busy = Odds(features=0, clients=3, operations=12, stall=0.05, crash=0.01)
    assert "overtook" in (found(busy, replaced=noticed_only) or "")


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
    put = add_waiting

    def unseen(tx: Transaction, waiting: Any) -> None:
        put(tx, [replace(wait, look=False) for wait in waiting])

    for caller in ("runs.submit", "runs.claim", "runs.retry", "orchestrator.recover"):
        monkeypatch.setattr(f"holdfast.{caller}.add_waiting", unseen)
    assert "never end" in (found(SETTLING) or "")


def test_rule_11_undone_a_look_that_is_cleared_too_early_leaves_runs_waiting(monkeypatch: Patch) -> None:
    """Cleared by who has just seen the row, instead of in a later snapshot and only if it has to wait."""
    head = broken("sqlite", "clear_looks", r"and \(\n[\s\S]*", "")
    looks = promote.looks

    def early(tx: Transaction, *, limit: int) -> int:
        promote.seen(tx, limit=limit)
        return looks(tx, limit=limit)

    monkeypatch.setattr(promote, "looks", early)
    assert "never end" in (found(SETTLING, replaced=head) or "")


def test_rule_12_undone_a_lost_ring_leaves_who_needs_the_run_waiting(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "needs_after", lambda tx, cursor, *, limit: None)
    assert "never end" in (found(replace(SETTLING, ring_lost=0.5, operations=12)) or "")
