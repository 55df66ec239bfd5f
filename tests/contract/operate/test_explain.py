"""Explain: the state of a run, what it waits for, and its timeline."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.workers import register
from tests.listing import runs_of

from holdfast import Context, Holdfast, Retry
from holdfast.operate.explain import NO_WORKER
from holdfast.runs.outcomes import Release
from holdfast.testing import FakeClock, Manual
from holdfast.values.events import KINDS

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def work(hf: Holdfast) -> Any:
    @hf.job(name="work", max_attempts=2, retry=Retry(delay=timedelta(minutes=5), jitter=0))
    def work(number: int = 0) -> None:
        if number == 13:
            raise ConnectionError("the other end is down")

    return work


@pytest.mark.contract("S3")
def test_why_no_worker_is_alive(hf: Holdfast, manual: Manual, clock: FakeClock, work: Any) -> None:
    run = work.submit()
    assert "no worker is alive" in run.why().reasons[0]
    register(hf, "w")
    assert "no worker is alive" not in run.why().reasons[0]
    clock.advance(2 * hf.settings.lease)
    assert "no worker is alive" in run.why().reasons[0]


@pytest.mark.contract("S3")
def test_why_no_live_worker_knows_the_job_and_the_run_is_never_failed_for_it(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    run = work.submit()
    register(hf, "w", jobs=["other"])
    assert run.why().reasons == ("no live worker knows job work",)

    clock.advance(timedelta(days=30))
    manual.worker(jobs=["other"]).claim()
    manual.orchestrate()
    assert run.refresh().state == "queued"


@pytest.mark.contract("S3")
def test_why_no_live_worker_serves_the_queue(hf: Holdfast, manual: Manual, work: Any) -> None:
    run = work.using(queue="mail").submit()
    register(hf, "w")
    [reason] = run.why().reasons
    assert "serves queue mail" in reason


@pytest.mark.contract("S3")
def test_why_the_queue_is_paused(hf: Holdfast, manual: Manual, work: Any) -> None:
    run = work.submit()
    register(hf, "w")
    hf.queues.pause("default", note="the mail server is down")

    assert manual.worker().claim() == []
    assert manual.worker().claim(oldest_first=True) == []
    [reason] = run.why().reasons
    assert "queue default has been paused since 2026-01-01" in reason
    assert "the mail server is down" in reason
    hf.queues.resume("default")
    assert manual.run_all() == 1


@pytest.mark.contract("S3")
def test_why_the_concurrency_is_used_up_and_how_many_runs_are_ahead(hf: Holdfast, manual: Manual, work: Any) -> None:
    register(hf, "w", concurrency=2)
    work.submit_many([{"number": n} for n in range(2)])
    manual.worker("w").claim(limit=2)
    first, second = work.submit(), work.submit()
    urgent = work.using(priority=1).submit()

    assert urgent.why().reasons == ("all workers that could start it are busy (1 worker, concurrency 2); it is next",)
    assert "1 ready run goes before it" in first.why().reasons[0]
    assert "2 ready runs go before it" in second.why().reasons[0]


@pytest.mark.contract("S3")
def test_why_a_ready_run_can_be_claimed_at_any_moment(hf: Holdfast, manual: Manual, work: Any) -> None:
    run = work.submit()
    register(hf, "w")
    assert run.why().reasons == ("it can be claimed at any moment; it is next",)


@pytest.mark.contract("S3")
def test_why_a_run_is_due_later(hf: Holdfast, manual: Manual, clock: FakeClock, work: Any) -> None:
    run = work.using(delay=3600).submit()
    register(hf, "w")
    [reason] = run.why().reasons
    assert "due at 2026-01-01 01:00:00 UTC" in reason
    assert "delayed" in reason


@pytest.mark.contract("S3", "X4")
def test_why_a_run_is_retried_later(hf: Holdfast, manual: Manual, work: Any) -> None:
    run = work.submit(13)
    manual.run_all()
    register(hf, "w")
    assert run.why().reasons == (
        "attempt 2 of 2 is due at 2026-01-01 00:05:00 UTC, after ConnectionError: the other end is down",
    )


@pytest.mark.contract("S3", "P3")
def test_why_names_the_holder_of_the_key_its_worker_and_its_expiry(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    @hf.job(name="keyed", key="{name}")
    def keyed(name: str) -> None: ...

    holder, second, third = keyed.submit("doc-1"), keyed.submit("doc-1"), keyed.submit("doc-1")
    register(hf, "w")
    assert second.why().reasons == (f"key doc-1 is held by run {holder.id}, which is ready but has not started",)
    worker = manual.worker("host-a:17:worker:ab")
    [claim] = worker.claim()

    [reason] = third.why().reasons
    assert f"key doc-1 is held by run {holder.id} on host-a:17:worker:ab until 2026-01-01 00:00:15 UTC" in reason
    assert "1 older run waits for it too" in reason
    worker.finish(claim)
    assert "key doc-1 is free" in second.why().reasons[0]


@pytest.mark.contract("S3")
def test_why_a_run_depends_on_another(hf: Holdfast, manual: Manual, work: Any) -> None:
    first, second = work.submit(), work.using(delay=60).submit()
    run = work.using(depends_on=[first, second]).submit()
    register(hf, "w")

    assert run.why().reasons == (
        f"it depends on run {first.id} (work), which is queued",
        f"it depends on run {second.id} (work), which is queued",
    )
    manual.run_all()
    assert run.why().reasons == (f"it depends on run {second.id} (work), which is queued",)


@pytest.mark.contract("S3")
def test_why_a_run_is_running_or_ended(hf: Holdfast, manual: Manual, work: Any) -> None:
    run = work.submit(13)
    worker = manual.worker("w")
    [claim] = worker.claim()
    run.cancel(reason="enough")

    running = run.why().reasons
    assert (
        "it has been running on w since 2026-01-01 00:00:00 UTC; its lease lasts until 2026-01-01 00:00:15 UTC"
        in running
    )
    assert "it was asked to stop at 2026-01-01 00:00:00 UTC" in running
    assert "it times out at 2026-01-01 00:02:00 UTC" in running
    worker.work(claim)
    assert run.why().reasons == ("it was cancelled at 2026-01-01 00:00:00 UTC: enough",)


@pytest.mark.contract("S3")
def test_why_a_failed_run_ended_shows_its_error(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="work")
    def work() -> None:
        raise ValueError("no such document")

    run = work.submit()
    manual.run_all()
    assert run.why().reasons == ("it failed at 2026-01-01 00:00:00 UTC: ValueError: no such document",)


@pytest.mark.contract("S3")
def test_why_a_waiting_run_has_not_been_checked_yet(hf: Holdfast, manual: Manual, database: Database) -> None:
    """A keyed run submitted in a caller transaction waits for an orchestrator."""
    import contextlib

    @hf.job(name="keyed", key="{name}")
    def keyed(name: str) -> None: ...

    with contextlib.closing(database.connect()) as connection:
        database.begin(connection)
        run = keyed.using(connection=connection).submit("a")
        connection.execute("commit")
    assert run.why().reasons == (f"key a is free; {NO_WORKER}",)
    register(hf, "w")
    assert run.why().reasons == ("key a is free; an orchestrator will give it to the oldest run shortly",)


@pytest.mark.contract("S3")
def test_why_says_that_no_worker_is_alive_whatever_else_a_run_waits_for(
    hf: Holdfast, manual: Manual, work: Any
) -> None:
    later = work.using(delay=3600).submit()
    dependent = work.using(depends_on=[later]).submit()
    for run in (later, dependent):
        assert len(run.why().reasons) == 2
        assert run.why().reasons[-1] == NO_WORKER
    register(hf, "w")
    for run in (later, dependent):
        assert len(run.why().reasons) == 1


@pytest.mark.contract("S3", "P3")
@pytest.mark.parametrize("alive", [True, False])
def test_why_the_worker_of_a_dependency_is_lost(hf: Holdfast, manual: Manual, clock: FakeClock, alive: bool) -> None:
    @hf.job(name="keyed", key="{name}")
    def keyed(name: str) -> None: ...

    @hf.build(name="environment", queue="default")
    def environment(c: str, fingerprint: str) -> None: ...

    first, second = keyed.submit("doc-1"), keyed.submit("doc-1")
    dependent = keyed.using(depends_on=[first]).submit("doc-2")
    waiting = keyed.using(depends_on=[environment.request(c="1", fingerprint="f")]).submit("doc-3")
    assert len(manual.worker("gone").claim(limit=9)) == 2
    clock.advance(2 * hf.settings.lease)
    if alive:
        register(hf, "w")

    takeover = "another worker will take it over" if alive else "no worker is alive to take it over: start one"
    lost = f"whose worker gone has been lost: its lease expired at 2026-01-01 00:00:15 UTC; {takeover}"
    assert second.why().reasons == (f"key doc-1 is held by run {first.id}, {lost}",)
    assert dependent.why().reasons == (f"it depends on run {first.id} (keyed), {lost}",)
    [reason] = waiting.why().reasons
    assert reason.startswith("it waits for build environment c:1 f (run ")
    assert reason.endswith(f"), {lost}")


@pytest.mark.contract("S3", "P3")
def test_why_the_key_is_held_by_a_waiting_run(hf: Holdfast, manual: Manual) -> None:
    @hf.job(name="keyed", key="{name}", key_order="strict", max_attempts=2, retry=Retry(delay=60, jitter=0))
    def keyed(name: str) -> None:
        raise ConnectionError

    first, second = keyed.submit("doc-1"), keyed.submit("doc-1")
    manual.run_all()
    kept = f"run {first.id}, which waits until 2026-01-01 00:01:00 UTC and keeps the key (key_order='strict')"
    assert second.why().reasons[0] == f"key doc-1 is held by {kept}"


# The timeline


@pytest.mark.contract("P11")
def test_the_timeline_of_a_run_that_succeeds(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    @hf.job(name="work")
    def work(ctx: Context) -> None:
        clock.advance(1)
        ctx.step("one", lambda: clock.advance(2))
        ctx.step("two", lambda: clock.advance(3))

    start = clock.now()
    run = work.submit()
    clock.advance(10)
    manual.run_all()

    events = [
        (e.kind, e.data.get("step"), (e.happened_at - start).total_seconds()) for e in run.timeline() if e.happened_at
    ]
    assert events == [
        ("RUN_QUEUED", None, 0),
        ("RUN_STARTED", None, 10),
        ("STEP_STARTED", "one", 11),
        ("STEP_FINISHED", "one", 13),
        ("STEP_STARTED", "two", 13),
        ("STEP_FINISHED", "two", 16),
        ("RUN_SUCCEEDED", None, 16),
    ]
    assert all(event.kind in KINDS for event in run.timeline())


@pytest.mark.contract("P11", "L6")
def test_the_timeline_of_a_run_with_every_kind_of_failure(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    fail = [True, True]

    def flaky() -> None:
        if fail:
            fail.pop()
            raise ConnectionError

    @hf.job(name="work", max_attempts=2, retry=Retry(delay=timedelta(seconds=10), jitter=0))
    def work(ctx: Context) -> None:
        ctx.step("one", flaky)
        ctx.log.info("between")
        ctx.progress(1, 2)
        raise ValueError("no good")

    run = work.submit()
    worker = manual.worker("a")
    worker.finish(worker.claim()[0], Release("leaving"))
    clock.advance(1)
    worker.claim()
    clock.advance(hf.settings.lease + timedelta(seconds=1))
    manual.run_all()
    clock.advance(100)
    manual.run_all()

    kinds = [event.kind for event in run.timeline()]
    assert kinds == [
        "RUN_QUEUED",
        "RUN_STARTED",
        "RUN_RELEASED",
        "RUN_STARTED",
        "RUN_TAKEN_OVER",
        "RUN_STARTED",
        "STEP_STARTED",
        "STEP_RETRIED",
        "RUN_RETRIED",
        "RUN_STARTED",
        "STEP_STARTED",
        "STEP_FINISHED",
        "PROGRESS",
        "RUN_FAILED",
    ]
    attempts = [event.claim for event in run.timeline()]
    assert attempts == [None, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4]
    times = [event.happened_at for event in run.timeline()]
    assert times == sorted(times, key=lambda at: at or clock.now())


@pytest.mark.contract("P11")
@pytest.mark.parametrize("how", ["cancelled before", "cancelled while running", "timed out", "failed by a crash"])
def test_every_outcome_is_in_the_timeline(hf: Holdfast, manual: Manual, clock: FakeClock, how: str) -> None:
    @hf.job(name="work", on_crash="fail")
    def work() -> None: ...

    run = work.submit()
    match how:
        case "cancelled before":
            run.cancel()
        case "cancelled while running":
            manual.worker().claim()
            run.cancel()
            clock.advance(60)
            manual.orchestrate()
        case "timed out":
            [claim] = manual.worker().claim()
            clock.advance(119)
            manual.worker().renew(claim)
            clock.advance(600)
            manual.orchestrate()
        case _:
            manual.worker().claim()
            clock.advance(60)
            manual.orchestrate()

    kinds = [event.kind for event in run.timeline()]
    assert (
        kinds
        == {
            "cancelled before": ["RUN_QUEUED", "RUN_CANCELLED"],
            "cancelled while running": [
                "RUN_QUEUED",
                "RUN_STARTED",
                "CANCEL_REQUESTED",
                "RUN_TAKEN_OVER",
                "RUN_CANCELLED",
            ],
            "timed out": ["RUN_QUEUED", "RUN_STARTED", "RUN_TAKEN_OVER", "RUN_TIMED_OUT"],
            "failed by a crash": ["RUN_QUEUED", "RUN_STARTED", "RUN_TAKEN_OVER", "RUN_FAILED"],
        }[how]
    )
    assert kinds.count("RUN_STARTED") == (0 if how == "cancelled before" else 1)


@pytest.mark.contract("S3")
@pytest.mark.parametrize(
    ("problem", "harm"),
    [
        ("nowhere", "delete from holdfast_ready where run_id = '{ready}'"),
        (
            "in_two_places",
            "insert into holdfast_ready (run_id, job, queue, rank, run_key, claim, attempt, takeovers) "
            "select run_id, job, queue, rank, run_key, claim, attempt, takeovers "
            "from holdfast_leases where run_id = '{running}'",
        ),
        ("never_submitted", "delete from holdfast_runs where id = '{ready}'"),
        ("run_without_key_lock", "delete from holdfast_key_locks where run_id = '{running}'"),
        ("key_lock_without_run", "update holdfast_key_locks set run_id = 'nobody' where run_id = '{running}'"),
        ("dependencies_miscounted", "update holdfast_waits set dependencies_left = 2 where run_id = '{dependent}'"),
        ("dependency_without_wait", "insert into holdfast_dependencies values ('{running}', '{ready}', 1)"),
    ],
)
def test_verify_finds_contradicting_rows(
    hf: Holdfast, manual: Manual, database: Database, problem: str, harm: str
) -> None:
    @hf.job(name="work", key="{name}")
    def work(name: str) -> None: ...

    running = work.submit("a")
    manual.worker().claim()
    ready = work.submit("b")
    dependent = work.using(depends_on=[ready]).submit("c")
    assert hf.verify() == []

    database.run(harm.format(running=running.id, ready=ready.id, dependent=dependent.id))

    assert problem in {finding.problem for finding in hf.verify()}


@pytest.mark.contract("S3")
def test_verify_finds_an_expired_lease_that_was_not_recovered(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Any
) -> None:
    run = work.submit()
    manual.worker().claim()
    clock.advance(2 * hf.settings.lease + timedelta(seconds=9))
    assert hf.verify() == []
    clock.advance(hf.settings.lease + timedelta(seconds=2))
    assert [(finding.problem, finding.run_id) for finding in hf.verify()] == [("lease_outlived", run.id)]


def test_runs_are_listed_by_any_tag_text(hf: Holdfast) -> None:
    @hf.job(name="tagged")
    def tagged() -> None: ...

    hostile = {"tenant": '50%_"\\[~'}
    wanted = tagged.using(tags={"a": "b", **hostile}).submit()
    tagged.using(tags={"tenant": "50xx"}).submit()
    tagged.submit()

    assert [run.id for run in runs_of(hf, tag=("tenant", hostile["tenant"]))] == [wanted.id]
    assert runs_of(hf, tag=("tenant", "50")) == []


def test_why_says_that_the_run_of_a_lost_worker_waits_for_a_takeover(hf: Holdfast, manual: Manual, clock: Any) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    run = work.submit()
    manual.worker("gone").claim()
    clock.advance(60)
    assert "no worker is alive to take it over" in run.why().reasons[0]
