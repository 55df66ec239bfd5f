"""Break the rules for moves, keys and notifications one by one; the simulation must find the violation.

Each test replaces one function or one statement; then at least one of a number of histories must violate a rule.
`test_ending_rules` has the rules for outcomes, takeover and clocks. `test_transaction_rules` has those for two open
transactions, on PostgreSQL.

Some rules have no test here:

- One function writes an outcome and releases its key lock, so one can't happen without the other.
- `test_caller_transaction` covers deferred SQLite transactions.
- `test_run_mutations` covers builds that are replaced by two open transactions, and the lock for a queue's capacity.
- `test_takeover` covers `single_process` and `exclusive`.
- The order in which tables are locked needs two open transactions; a wrong order causes deadlocks.
- A history is too short for retention.
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
    """Return a promotion that acts on the rows that an earlier transaction read."""
    seen: list[Any] = []

    def act(tx: Transaction, *, limit: int) -> int:
        rows, seen[:] = list(seen), tx.all(statement, now=tx.now, limit=limit)
        return verb(tx, rows)

    return act


def move_rows_that_the_delete_returned(tx: Transaction, rows: list[Any]) -> int:
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


def move_rows_that_were_read(tx: Transaction, rows: list[Any]) -> int:
    for row in rows:
        if row["run_key"] is None:
            take_waiting(tx, [row["run_id"]])
            ready.put(tx, [QueueEntry(run_id=row["run_id"], job="work", queue="default", rank=0, key=None)])
    return move_rows_that_the_delete_returned(tx, [row for row in rows if row["run_key"] is not None])


SLOW_WORLD = Odds(features=0, crash=0, pause=0, clock_step=0, shutdown=0)


def test_a_slow_orchestrator_does_no_harm_if_it_moves_only_rows_that_its_delete_returned(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "due", slow(move_rows_that_the_delete_returned, "find_due"))
    assert found(SLOW_WORLD, seeds=5) is None


def test_the_oracle_finds_a_run_in_two_places(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "due", slow(move_rows_that_were_read, "find_due"))
    assert found(SLOW_WORLD) is not None


def slow_dependency_check(met: Callable[[Transaction, list[Any]], object]) -> Callable[..., None]:
    """Return a check of dependencies that acts on the rows that an earlier transaction read."""
    seen: list[Any] = []

    def dependencies_after(tx: Transaction, cursor: tuple[str, str], *, limit: int) -> None:
        rows = tx.all("find_dependencies_after", depends_on="", run_id="", limit=limit)
        earlier, seen[:] = list(seen), [row for row in rows if row["state"] is not None]
        met(tx, earlier)

    return dependencies_after


def count_rows_that_were_read(tx: Transaction, met: list[Any]) -> None:
    tx.all("delete_dependencies", rows=[{"depends_on": row["depends_on"], "run_id": row["run_id"]} for row in met])
    promote.subtract_dependencies(tx, Counter(row["run_id"] for row in met), bad={})


def test_a_slow_orchestrator_does_no_harm_if_it_counts_only_rows_that_its_delete_returned(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "dependencies_after", slow_dependency_check(promote._remove_met))
    assert found(SLOW_WORLD, seeds=5) is None


def test_the_oracle_finds_miscounted_dependencies(monkeypatch: Patch) -> None:
    """Broken: an orchestrator counts the rows it read, not the rows DELETE returned, so two may count the same row."""
    monkeypatch.setattr(promote, "dependencies_after", slow_dependency_check(count_rows_that_were_read))
    assert "dependencies left are" in (found(SLOW_WORLD) or "")


def test_the_oracle_finds_a_delayed_run_that_is_ready_before_its_time(monkeypatch: Patch) -> None:
    place = place_runs
    monkeypatch.setattr(
        submit, "place_runs", lambda tx, these, **more: place(tx, [replace(s, due_at=None) for s in these], **more)
    )
    assert "before its time" in (found() or "")


def test_the_oracle_finds_a_worker_that_claims_more_than_its_concurrency(monkeypatch: Patch) -> None:
    claim = claim_runs

    def greedy(tx: Transaction, queues: Sequence[str], *, limit: int, **given: Any) -> list[ClaimedRun]:
        return claim(tx, queues, limit=limit + 3, **given)

    monkeypatch.setattr("holdfast.worker.loop.claim_runs", greedy)
    assert "more than its concurrency" in (found() or "")


def test_the_oracle_finds_a_claim_number_that_is_used_again(monkeypatch: Patch) -> None:
    put = ready.put
    monkeypatch.setattr(
        ready, "put", lambda tx, entries: put(tx, [t.changed(claim=max(0, t.claim - 1)) for t in entries])
    )
    assert "claim" in (found() or "")


# Keys


def test_the_oracle_finds_runs_that_wait_forever_for_a_deleted_key_lock() -> None:
    deleting = broken("sqlite", "open_key_locks", r"update (holdfast_key_locks\s+)set run_id = null", r"delete from \1")
    assert found(SETTLING, replaced=deleting) is not None


def test_the_oracle_finds_a_submission_that_overtakes_waiting_runs_of_its_key() -> None:
    ignoring_waiting_runs = broken("sqlite", "take_key_locks", "where not exists", "where true or exists")
    crowded = Odds(features=0, clients=4, operations=12)
    assert "overtook" in (found(crowded, replaced=ignoring_waiting_runs, first=18) or "")


def test_the_oracle_finds_a_key_given_to_a_younger_run_before_the_oldest_due_one() -> None:
    youngest = broken("sqlite", "find_turns", r"min\(", "max(")
    assert "overtook" in (found(replaced=youngest, first=14) or "")


def test_the_oracle_finds_a_run_that_is_overtaken_just_after_it_became_due() -> None:
    """Broken: a run counts as due only after an orchestrator has noticed it, not as soon as its time has come."""
    noticed_only = broken("sqlite", "find_turns", r"w\.due_at <= :now", r"(\g<0> and 1 = 0)")
    busy = Odds(features=0, clients=3, operations=12, stall=0.05, crash=0.01)
    assert "overtook" in (found(busy, replaced=noticed_only) or "")


def test_the_oracle_finds_a_strict_run_that_loses_its_key_with_its_worker(monkeypatch: Patch) -> None:
    decide = recover.decide

    def lax(tx: Transaction, lease: Lease, policy: Policy, **given: Any) -> Any:
        return decide(tx, lease, replace(policy, key_order="due"), **given)

    monkeypatch.setattr(recover, "decide", lax)
    assert "lost its key" in (found(Odds(features=0, crash=0.01), first=13) or "")


# Wake-ups


def test_every_run_ends_even_if_every_notification_is_lost() -> None:
    """Notifications only save time: orchestrators and workers also poll."""
    assert found(Odds(notification_lost=1.0), seeds=5) is None


def test_the_oracle_finds_waiting_runs_that_are_never_marked_as_unchecked(monkeypatch: Patch) -> None:
    put = add_waiting

    def without_mark(tx: Transaction, waiting: Any) -> None:
        put(tx, [replace(wait, unchecked=False) for wait in waiting])

    for caller in ("runs.submit", "runs.claim", "runs.retry", "orchestrator.recover"):
        monkeypatch.setattr(f"holdfast.{caller}.add_waiting", without_mark)
    assert "never end" in (found(SETTLING) or "")


def test_the_oracle_finds_waiting_runs_that_are_marked_as_checked_too_early(monkeypatch: Patch) -> None:
    """Broken: the mark is cleared before the check, even for runs that nothing blocks any more."""
    unconditional = broken("sqlite", "mark_checked", r"and \(\n[\s\S]*", "")
    check_waiting = promote.check_waiting

    def clearing_first(tx: Transaction, *, limit: int) -> int:
        promote.mark_checked(tx, limit=limit)
        return check_waiting(tx, limit=limit)

    monkeypatch.setattr(promote, "check_waiting", clearing_first)
    assert "never end" in (found(SETTLING, replaced=unconditional) or "")


def test_the_oracle_finds_dependent_runs_that_wait_forever_after_a_lost_notification(monkeypatch: Patch) -> None:
    monkeypatch.setattr(promote, "dependencies_after", lambda tx, cursor, *, limit: None)
    assert "never end" in (found(replace(SETTLING, notification_lost=0.5, operations=12)) or "")
