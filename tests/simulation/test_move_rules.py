"""Undo each rule of the protocol that shows itself at the borders of transactions: the simulation must find it.

A rule is undone by replacing one function or one statement; within so many seeds at least one history must go wrong.
Here are the rules of moves, keys and wake-ups; those of ends and clocks are in `test_ending_rules`. Where a rule is
about what two open transactions do to each other, PostgreSQL shows it, in `test_transaction_rules`.

Not here, because nothing can be undone in this design: 5 (outcome and hold change in one transaction: one verb does
both), 10 (a deferred SQLite transaction: `test_caller_transaction`), 16 (a build is replaced by compare-and-swap: two
open transactions again, as in `test_run_mutations`), 18 (capacity is counted under a lock: the same), 25 (retention: a
history is too short for it), 20 (`solo` and `exclusive` are locks of the operating system and of a row:
`test_takeover`), 22 (the order of tables: deadlocks need two open transactions, as in rule 21), 23 (no foreign keys: a
matter of bytes), 24 (a floor for claims: a matter of speed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tests.mutants.statements import broken
from tests.simulation.broken_rules import SETTLING, Patch, found
from tests.simulation.world import Odds

from holdfast.orchestrator import promote, recover
from holdfast.runs import ready, submit
from holdfast.runs.claim import ClaimedRun, claim_runs
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
        held = promote._kept_key_locks(tx, keyed)
        promote._make_ready(tx, sorted(held), held)
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
        rows = tx.all("find_dependencies_after", depends_on="", run_id="", limit=limit)
        earlier, seen[:] = list(seen), [row for row in rows if row["state"] is not None]
        met(tx, earlier)

    return needs_after


def count_what_was_seen(tx: Transaction, met: list[Any]) -> None:
    tx.all("delete_dependencies", rows=[{"depends_on": row["depends_on"], "run_id": row["run_id"]} for row in met])
    promote.subtract_dependencies(tx, Counter(row["run_id"] for row in met), bad={})


def test_rule_2_a_slow_orchestrator_does_no_harm_if_it_counts_what_its_delete_returned(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "dependencies_after", slow_at_needs(promote._remove_met))
    assert found(SLOW_WORLD, seeds=5) is None


def test_rule_2_undone_dependencies_are_miscounted(monkeypatch: Patch) -> None:
    """Counting what was seen, not what the DELETE returned: two orchestrators subtract the same need."""
    monkeypatch.setattr(promote, "dependencies_after", slow_at_needs(count_what_was_seen))
    assert "needs say" in (found(SLOW_WORLD) or "")


def test_rule_3_undone_a_delayed_run_is_ready_before_its_time(monkeypatch: Patch) -> None:
    place = place_runs
    monkeypatch.setattr(
        submit, "place_runs", lambda tx, these, **more: place(tx, [replace(s, due_at=None) for s in these], **more)
    )
    assert "before its time" in (found() or "")


def test_rule_4_undone_a_worker_claims_more_than_its_concurrency(monkeypatch: Patch) -> None:
    claim = claim_runs

    def greedy(tx: Transaction, queues: Sequence[str], *, limit: int, **given: Any) -> list[ClaimedRun]:
        return claim(tx, queues, limit=limit + 3, **given)

    monkeypatch.setattr("holdfast.worker.loop.claim_runs", greedy)
    assert "places" in (found() or "")


def test_rule_4_undone_a_claim_number_is_used_again(monkeypatch: Patch) -> None:
    put = ready.put
    monkeypatch.setattr(
        ready, "put", lambda tx, entries: put(tx, [t.changed(claim=max(0, t.claim - 1)) for t in entries])
    )
    assert "claim" in (found() or "")


# Keys


def test_rule_6_undone_a_deleted_key_lock_strands_its_waiting_runs() -> None:
    deleting = broken("sqlite", "open_key_locks", r"update (holdfast_key_locks\s+)set run_id = null", r"delete from \1")
    assert found(SETTLING, replaced=deleting) is not None


def test_rule_6_undone_a_submission_that_ignores_waiting_runs_overtakes_them() -> None:
    blind = broken("sqlite", "take_key_locks", "where not exists", "where true or exists")
    crowded = Odds(features=0, clients=4, operations=12)
    assert "overtook" in (found(crowded, replaced=blind, first=18) or "")


def test_rule_7_undone_a_younger_run_gets_the_key_before_the_oldest_due_one() -> None:
    youngest = broken("sqlite", "find_turns", r"min\(", "max(")
    assert "overtook" in (found(replaced=youngest, first=14) or "")


def test_rule_7_undone_a_run_that_has_just_become_due_is_overtaken() -> None:
    """Due is who is due by the clock, whether an orchestrator has noticed it or not."""
    noticed_only = broken("sqlite", "find_turns", r"w\.due_at <= :now", r"(\g<0> and 1 = 0)")
    busy = Odds(features=0, clients=3, operations=12, stall=0.05, crash=0.01)
    assert "overtook" in (found(busy, replaced=noticed_only) or "")


def test_rule_7_undone_a_strict_run_loses_its_key_with_its_worker(monkeypatch: Patch) -> None:
    decide = recover.decide

    def lax(tx: Transaction, lease: Lease, policy: Policy, **given: Any) -> Any:
        return decide(tx, lease, replace(policy, key_order="due"), **given)

    monkeypatch.setattr(recover, "decide", lax)
    assert "lost its key" in (found(Odds(features=0, crash=0.01), first=13) or "")


# Wake-ups


def test_rule_11_every_notification_may_be_lost() -> None:
    """A ring is for speed only: the ticks and the looks find everything."""
    assert found(Odds(ring_lost=1.0), seeds=5) is None


def test_rule_11_undone_a_check_flag_that_is_never_set_strands_runs(monkeypatch: Patch) -> None:
    put = add_waiting

    def unseen(tx: Transaction, waiting: Any) -> None:
        put(tx, [replace(wait, unchecked=False) for wait in waiting])

    for caller in ("runs.submit", "runs.claim", "runs.retry", "orchestrator.recover"):
        monkeypatch.setattr(f"holdfast.{caller}.add_waiting", unseen)
    assert "never end" in (found(SETTLING) or "")


def test_rule_11_undone_a_check_flag_that_is_cleared_too_early_strands_runs(monkeypatch: Patch) -> None:
    """Cleared by who has just seen the row, instead of in a later snapshot and only if it has to wait."""
    head = broken("sqlite", "mark_checked", r"and \(\n[\s\S]*", "")
    looks = promote.check_waiting

    def early(tx: Transaction, *, limit: int) -> int:
        promote.mark_checked(tx, limit=limit)
        return looks(tx, limit=limit)

    monkeypatch.setattr(promote, "check_waiting", early)
    assert "never end" in (found(SETTLING, replaced=head) or "")


def test_rule_12_undone_a_lost_notification_strands_dependent_runs(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "dependencies_after", lambda tx, cursor, *, limit: None)
    assert "never end" in (found(replace(SETTLING, ring_lost=0.5, operations=12)) or "")
