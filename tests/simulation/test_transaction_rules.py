"""Break the rules for concurrent transactions; open transactions and locks show the violation."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from tests.listing import runs_of
from tests.mutants.statements import broken, use
from tests.simulation.broken_rules import Patch

from holdfast import Holdfast, StoreBusy
from holdfast.runs import finish, submit
from holdfast.runs.finish import end_runs
from holdfast.runs.lease import Lease, renew_leases
from holdfast.runs.outcomes import Succeeded
from holdfast.runs.submission import Submission
from holdfast.runs.submit import place_runs
from holdfast.store.dialects.base import Conflict
from holdfast.store.transaction import Transaction
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual
from holdfast.worker.completer import Completer

# Two open transactions on PostgreSQL


@pytest.fixture
def on_postgres(postgres_url: str) -> Iterator[Holdfast]:
    with Holdfast(postgres_url, clock=FakeClock(), ids=Ids(seed=1), busy_timeout=0.3) as hf:
        hf.job(name="work", key="key")(work)
        yield hf


def work(key: str) -> None: ...


def submit_twice(hf: Holdfast, url: str) -> None:
    """Submit in a caller transaction, and while it is open submit another run of the same key outside it."""
    with psycopg.connect(url) as caller:
        hf.jobs["work"].using(connection=caller).submit(key="k")
        hf.jobs["work"].submit(key="k")


def test_a_callers_open_transaction_blocks_no_other_submitter(on_postgres: Holdfast, postgres_url: str) -> None:
    submit_twice(on_postgres, postgres_url)
    Manual(on_postgres).orchestrate()
    # The caller's run was not committed yet when the other run took the key lock, so it waits.
    assert [run.place for run in runs_of(on_postgres)] == ["ready", "waits"]


def test_other_submitters_are_blocked_if_a_caller_transaction_takes_the_key_lock(
    on_postgres: Holdfast, postgres_url: str, monkeypatch: Patch
) -> None:
    place = place_runs

    def as_if_owned(tx: Transaction, submissions: Sequence[Submission], **more: Any) -> None:
        tx.owned = True
        place(tx, submissions, **more)

    monkeypatch.setattr(submit, "place_runs", as_if_owned)
    with pytest.raises(StoreBusy):
        submit_twice(on_postgres, postgres_url)


def submit_the_same_again(hf: Holdfast, url: str) -> tuple[str, str, int]:
    """Submit twice with one idempotency key, the second time in a caller transaction that continues afterwards."""
    first = hf.jobs["work"].using(idempotency_key="once").submit(key="k")
    with psycopg.connect(url) as caller:
        again = hf.jobs["work"].using(idempotency_key="once", connection=caller).submit(key="k")
        row = caller.execute("select 42").fetchone()
    assert row is not None
    return first.id, again.id, row[0]


def test_a_callers_transaction_survives_a_repeated_idempotency_key(on_postgres: Holdfast, postgres_url: str) -> None:
    first, again, answer = submit_the_same_again(on_postgres, postgres_url)
    assert (first, answer) == (again, 42)


def test_a_callers_transaction_is_aborted_if_a_repeated_key_violates_a_constraint(
    on_postgres: Holdfast, postgres_url: str, monkeypatch: Patch
) -> None:
    """On PostgreSQL, a unique violation aborts the transaction even if the exception is caught."""
    use(on_postgres, broken("postgres", "insert_runs", "on conflict do nothing", ""))
    put = Transaction.all

    def catching(tx: Transaction, name: str, /, **values: Any) -> Any:
        try:
            return put(tx, name, **values)
        except psycopg.errors.UniqueViolation:
            return []

    monkeypatch.setattr(Transaction, "all", catching)
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        submit_the_same_again(on_postgres, postgres_url)


# A result that the database rejects


@pytest.fixture
def with_a_bad_result(postgres_url: str) -> Iterator[tuple[Holdfast, Any, Any]]:
    with Holdfast(postgres_url, poll_interval=0.05, lease=3) as hf:

        @hf.job(name="good")
        def good() -> str:
            return "fine"

        @hf.job(name="bad")
        def bad() -> str:
            return "fine"

        yield hf, good, bad


def refuse_bad_outcomes(monkeypatch: Patch, hf: Holdfast) -> None:
    """Fail as if a result had a character that PostgreSQL can't store and that the codec did not replace."""
    end = end_runs

    def refusing(tx: Transaction, endings: Any) -> None:
        endings = list(endings)
        end(tx, endings)
        if any(one.entry.job == "bad" and isinstance(one.outcome, Succeeded) for one in endings):
            tx.all("announce", names="a zero byte: \x00")

    monkeypatch.setattr(finish, "end_runs", refusing)


def test_one_result_that_cannot_be_stored_fails_only_its_own_run(
    with_a_bad_result: tuple[Holdfast, Any, Any], monkeypatch: Patch
) -> None:
    hf, good, bad = with_a_bad_result
    refuse_bad_outcomes(monkeypatch, hf)
    submitted = [job.submit() for job in (good, bad, good, bad, good)]
    with hf.worker(drain=True) as worker:
        worker.join(timeout=30)
    states = [hf.snapshot(run.id) for run in submitted]
    assert [one.state for one in states] == ["succeeded", "failed", "succeeded", "failed", "succeeded"]
    assert {one.failure_type for one in states if one.state == "failed"} == {"RESULT_NOT_STORABLE"}


def test_one_bad_result_blocks_its_whole_batch_if_the_batch_is_not_split(
    with_a_bad_result: tuple[Holdfast, Any, Any], monkeypatch: Patch
) -> None:
    hf, _, bad = with_a_bad_result
    refuse_bad_outcomes(monkeypatch, hf)

    def no_halving(self: Completer, ended: Any) -> None:
        raise RuntimeError("the batch can't be written")

    monkeypatch.setattr(Completer, "finish_in_halves", no_halving)
    monkeypatch.setattr("holdfast.worker.loop.log.exception", lambda *_: None)
    run = bad.submit()
    worker = hf.worker(drain=True)
    worker.start()
    with pytest.raises(RuntimeError, match="can't be written"):
        worker.join(timeout=30)
    assert hf.snapshot(run.id).state == "running"


# Locks


def renew_against_ordered_locks(hf: Holdfast, url: str, monkeypatch: Patch) -> int:
    """Renew two leases while another connection locks them in the order of their ids, and count the deadlocks."""
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
            lambda tx: renew_leases(tx, held, holder="a", lease_for=settings.lease, kill_grace=settings.kill_grace)
        )
    )
    lock = "select 1 from holdfast_leases where run_id = %s for update"
    with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as observer:
        other.execute(lock, [first])
        renewing.start()
        for _ in range(6000):
            row = observer.execute("select count(*) from pg_stat_activity where wait_event_type = 'Lock'").fetchone()
            if row is not None and row[0]:
                break
            threading.Event().wait(0.01)
        try:
            other.execute(lock, [second])
        except psycopg.errors.DeadlockDetected as error:
            deadlocks.append(error)
    renewing.join(timeout=60)
    return len(deadlocks)


@pytest.fixture
def patient(postgres_url: str) -> Iterator[Holdfast]:
    with Holdfast(postgres_url, clock=FakeClock(), ids=Ids(seed=1)) as hf:
        hf.job(name="free")(lambda: None)
        yield hf


def test_renewing_leases_in_the_order_of_their_ids_causes_no_deadlock(
    patient: Holdfast, postgres_url: str, monkeypatch: Patch
) -> None:
    assert renew_against_ordered_locks(patient, postgres_url, monkeypatch) == 0


def test_renewing_leases_in_another_order_deadlocks(patient: Holdfast, postgres_url: str, monkeypatch: Patch) -> None:
    use(patient, broken("postgres", "renew_leases", r"order by l\.run_id", "order by l.run_id desc"))
    assert renew_against_ordered_locks(patient, postgres_url, monkeypatch) > 0
