"""Outcomes: how a run ends; an outcome never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.waiting import hold_past_the_deadline

from holdfast import Cancelled, Context, Holdfast, ResultTimeout, RunFailed, TryAgain
from holdfast.runs.outcomes import Failed, Succeeded
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


def end(hf: Holdfast, manual: Manual, clock: FakeClock, how: str) -> str:
    """Submit a run and end it with this state; return its id."""

    @hf.job(name=how, max_attempts=1)
    def work() -> str:
        if how == "failed":
            raise ValueError("no")
        return "done"

    run = work.submit()
    match how:
        case "succeeded" | "failed":
            manual.run_all()
        case "cancelled":
            run.cancel(reason="not wanted")
        case "timed_out":
            hold_past_the_deadline(manual.worker(), manual.worker().claim()[0], clock)
            manual.orchestrate()
    assert run.refresh().state == how
    return run.id


STATES = ["succeeded", "failed", "cancelled", "timed_out"]


@pytest.mark.contract("P8", "Q16")
@pytest.mark.parametrize("how", STATES)
@pytest.mark.parametrize(
    "change",
    [
        "update holdfast_outcomes set state = 'succeeded'",
        "update holdfast_outcomes set error = 'rewritten'",
        "update holdfast_outcomes set finished_at = started_at where started_at is not null or finished_at is not null",
        "delete from holdfast_outcomes",
    ],
)
def test_the_database_refuses_to_change_or_delete_an_outcome(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, how: str, change: str
) -> None:
    run_id = end(hf, manual, clock, how)
    before = hf.snapshot(run_id)

    with pytest.raises(database.errors, match="outcome"):
        database.run(change)

    assert hf.snapshot(run_id) == before
    assert hf.verify() == []


@pytest.mark.contract("P8")
def test_postgres_refuses_to_truncate_outcomes(postgres_url: str) -> None:
    import psycopg

    with Holdfast(postgres_url) as hf, psycopg.connect(postgres_url, autocommit=True) as other:
        hf.start()
        with pytest.raises(psycopg.Error, match="outcome"):
            other.execute("truncate holdfast_outcomes")


@pytest.mark.contract("P8")
@pytest.mark.parametrize("how", STATES)
def test_no_operation_of_the_engine_changes_an_ended_run(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, how: str
) -> None:
    run_id = end(hf, manual, clock, how)
    before = hf.snapshot(run_id)

    assert hf.cancel(run_id) == how
    hf.again(run_id)
    clock.advance(10_000)
    manual.run_all()

    assert hf.snapshot(run_id) == before
    assert database.all(f"select count(*) from holdfast_outcomes where run_id = '{run_id}'") == [(1,)]


@pytest.mark.contract("P8", "Q16")
def test_again_submits_a_new_run_that_names_the_original(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    calls: list[int] = []

    @hf.job(name="work", queue="mail", priority=4, key="number", max_attempts=2, timeout=7)
    def work(number: int) -> int:
        calls.append(number)
        if len(calls) == 1:
            raise ValueError("the first time")
        return number

    first = work.using(tags={"a": "b"}, max_attempts=1).submit(7)
    manual.run_all()
    assert first.refresh().state == "failed"
    before = first.snapshot
    clock.advance(60)

    second = first.again()
    manual.run_all()

    assert second.id != first.id
    new = second.refresh().snapshot
    assert new.again_of == first.id
    assert (new.args, new.tags, new.queue, new.priority, new.key, new.policy) == (
        before.args,
        before.tags,
        before.queue,
        before.priority,
        before.key,
        before.policy,
    )
    assert (second.result(timeout=1), second.state) == (7, "succeeded")
    assert first.refresh().snapshot == before
    assert second.again().snapshot.again_of == second.id
    columns = {column for column, *_ in _columns(database, "runs")}
    assert not {"claim", "attempts", "attempt", "retries", "state", "status"} & columns


def _columns(database: Database, table: str) -> list[tuple[Any, ...]]:
    if database.url.startswith("sqlite"):
        return database.all(f"select name from pragma_table_info('{database.prefix}{table}')")
    return database.all(
        f"select column_name from information_schema.columns where table_name = '{database.prefix}{table}'"
    )


@pytest.mark.contract("S3")
def test_a_result_is_waited_for_and_a_failure_is_raised(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="work")
    def work(fail: bool) -> str:
        if fail:
            raise ValueError("no good")
        return "good"

    good, bad = work.submit(False), work.submit(True)
    with pytest.raises(ResultTimeout, match="queued") as late:
        good.result(timeout=0)
    assert late.value.code == "result_timeout"
    assert isinstance(late.value, TimeoutError)
    manual.run_all()

    assert good.result() == "good"
    with pytest.raises(RunFailed, match="no good") as failed:
        bad.result()
    assert (failed.value.code, failed.value.state, failed.value.failure_type) == ("run_failed", "failed", "ERROR")
    assert hf.get(good.id).result() == "good"


@pytest.mark.contract("S3")
def test_the_stored_error_keeps_its_chain_and_its_traceback(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work() -> None:
        try:
            raise KeyError("the cause")
        except KeyError as error:
            raise RuntimeError("the consequence") from error

    run = work.submit()
    manual.run_all()

    error = run.refresh().snapshot.error
    assert error is not None
    assert "the cause" in error
    assert "RuntimeError: the consequence" in error
    assert "test_outcomes.py" in error


SECRETS = [
    "password=hunter2secret",
    "Authorization: Bearer hunter2secret",
    "postgresql://ada:hunter2secret@db.example/x",
    "{'api_key': 'hunter2secret'}",
    "card 4111-hunter2secret",
]


@pytest.mark.contract("S4")
@pytest.mark.parametrize("text", SECRETS)
@pytest.mark.parametrize("kind", ["failed", "retried", "step retried", "unstorable result"])
def test_secrets_never_reach_the_database_with_an_error(url: str, database: Database, text: str, kind: str) -> None:
    clock = FakeClock()
    with Holdfast(url, clock=clock, redact=[r"card \d+-(\w+)"]) as hf:

        @hf.job(name="work", max_attempts=2 if kind == "retried" else 1)
        def work(ctx: Context) -> Any:
            def fail() -> None:
                raise ValueError(text)

            if kind == "unstorable result":
                return Unstorable(text)
            ctx.step("one", fail) if kind == "step retried" else fail()
            return None

        run = work.submit()
        Manual(hf).run_all()

        assert run.refresh().state == ("queued" if kind == "retried" else "failed")
        for table in ("outcomes", "events", "waits"):
            assert "hunter2secret" not in repr(database.all(f"select * from holdfast_{table}")), table
        if kind != "unstorable result":
            assert "[redacted]" in repr([event.data for event in run.timeline()] + [run.snapshot.reason])


class Unstorable:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"<Unstorable {self.text}>"


@pytest.mark.contract("S3", "S4")
@pytest.mark.parametrize(
    "value", [object(), {1: object()}, float, b"\xff\xfe", "\ud800"], ids=["object", "dict", "type", "bytes", "half"]
)
def test_a_result_that_cannot_be_stored_fails_only_its_own_run(hf: Holdfast, manual: Manual, value: Any) -> None:
    @hf.job(name="work")
    def work(good: bool) -> Any:
        return "good" if good else value

    runs = [work.submit(True), work.submit(False), work.submit(True)]
    manual.run_all()

    assert [run.refresh().state for run in runs] == ["succeeded", "failed", "succeeded"]
    assert runs[1].snapshot.failure_type == "RESULT_NOT_STORABLE"
    assert hf.verify() == []


@pytest.mark.contract("S4")
def test_a_result_that_is_too_large_fails_its_run(url: str) -> None:
    with Holdfast(url, clock=FakeClock(), max_result_bytes=1000) as hf:

        @hf.job(name="work")
        def work() -> str:
            return "x" * 1000

        run = work.submit()
        Manual(hf).run_all()

        assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "RESULT_NOT_STORABLE")
        assert "1,000 are allowed" in str(run.snapshot.error)


@pytest.mark.contract("S3")
@pytest.mark.parametrize("text", ["nul \x00 inside", "half \ud83d a fox", "x" * 100_000], ids=["nul", "half", "long"])
@pytest.mark.parametrize("attempts", [1, 2])
def test_any_error_text_can_be_stored(hf: Holdfast, manual: Manual, clock: FakeClock, text: str, attempts: int) -> None:
    @hf.job(name="work", max_attempts=attempts)
    def work(ctx: Context) -> None:
        def fail() -> None:
            raise ValueError(text)

        ctx.step("one", fail)

    run = work.submit()
    manual.run_all()
    clock.advance(600)
    manual.run_all()

    assert (run.refresh().state, run.snapshot.failure_type, run.snapshot.attempt) == ("failed", "ERROR", attempts)
    assert "ValueError" in str(run.snapshot.error)
    assert hf.verify() == []


@pytest.mark.contract("P8")
def test_a_finish_writes_the_whole_outcome(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    run = work.submit()
    worker = manual.worker("w")
    started = clock.now()
    [claim] = worker.claim()
    clock.advance(3)
    worker.finish(claim, Failed("BROKEN", "in two"))

    seen = run.refresh().snapshot
    assert (seen.state, seen.failure_type, seen.error, seen.result) == ("failed", "BROKEN", "in two", None)
    assert (seen.holder, seen.started_at, seen.finished_at) == ("w", started, clock.now())
    assert (seen.claim, seen.attempt, seen.takeovers) == (1, 1, 0)


@pytest.mark.contract("S3")
def test_a_batch_of_finishes_is_all_or_nothing(hf: Holdfast, manual: Manual, database: Database) -> None:
    from holdfast.runs.finish import finish_runs

    @hf.job(name="work")
    def work() -> None: ...

    work.submit_many([{}] * 3)
    claims = manual.worker("w").claim(limit=3)

    def finish(tx: Any) -> None:
        finish_runs(tx, [(claim.lease, Succeeded()) for claim in claims], holder="w")
        raise RuntimeError("the process dies before the commit")

    with pytest.raises(RuntimeError):
        hf.do(finish)
    assert (database.count("leases"), database.count("outcomes")) == (3, 0)
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_a_job_may_cancel_itself(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work", max_attempts=5)
    def work() -> None:
        raise Cancelled("nothing to do")

    run = work.submit()
    manual.run_all()
    assert (run.refresh().state, run.snapshot.error) == ("cancelled", "nothing to do")


@pytest.mark.contract("S3")
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), TryAgain("once more")], ids=repr)
def test_any_exception_fails_only_its_own_run(hf: Holdfast, manual: Manual, error: BaseException) -> None:
    @hf.job(name="work")
    def work() -> None:
        raise error

    run = work.submit()
    manual.run_all()
    assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "ERROR")
