"""Bulk operations: all matching runs are cancelled or run again, each exactly once."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Count, Holdfast, Job, LeaseLost, Run, RunFilter
from holdfast.operate import bulk as bulk_jobs
from holdfast.operate.search import search_runs
from holdfast.orchestrator import recover
from holdfast.runs.outcomes import Failed, RetryLater
from holdfast.testing import FakeClock, Manual


@pytest.fixture
def work(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> Job[..., Any]:
    monkeypatch.setattr(bulk_jobs, "PAGE", 4)

    @hf.job(name="work")
    def work(n: int) -> int:
        return n

    return work


def fail(manual: Manual, count: int) -> None:
    worker = manual.worker()
    for claim in worker.claim(limit=count):
        worker.finish(claim, Failed("ERROR", "no"))


def run_bulks(manual: Manual) -> None:
    """Execute only the bulk operations."""
    worker = manual.worker("bulk", queues=["operations"])
    while claims := worker.claim():
        worker.work(claims[0])
        manual.promote()


def test_all_matching_runs_are_cancelled_in_every_state(hf: Holdfast, manual: Manual, work: Job[..., Any]) -> None:
    ready = work.submit_many([{"n": number} for number in range(10)])
    waiting = work.using(delay=60).submit_many([{"n": number} for number in range(3)])
    running = manual.worker().claim(limit=2)
    other = work.using(queue="other").submit(n=1)
    bulk = hf.bulk.cancel(RunFilter(queue="default"), reason="wrong file", by="ann")
    later = work.submit(n=99)

    run_bulks(manual)

    assert bulk.result(timeout=0) == {"matched": 13, "done": 13, "skipped": 0}
    states = Counter(hf.get(run.id).state for run in [*ready, *waiting])
    assert states == {"cancelled": 11, "running": 2}
    assert all(hf.snapshot(claim.lease.run_id).cancel_requested_at for claim in running)
    assert (other.refresh().state, later.refresh().state) == ("queued", "queued")
    assert hf.get(waiting[0].id).snapshot.error == "wrong file"
    assert {one.details.get("bulk") for one in hf.audit_log(limit=100)} == {bulk.id, None}
    assert hf.verify() == []


def test_a_run_that_returns_to_its_queue_during_a_bulk_cancel_is_cancelled_too(
    hf: Holdfast, manual: Manual, work: Job[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is running while the queued runs are searched, and queued again while the running ones are searched."""
    run = work.submit(n=1)
    worker = manual.worker()
    [claim] = worker.claim()
    bulk = hf.bulk.cancel(RunFilter(job="work"))

    def search(tx: Any, wanted: RunFilter, *, real: Any = search_runs, **given: Any) -> Any:
        if wanted.state == "running" and run.refresh().state == "running":
            worker.finish(claim, RetryLater("not yet", timedelta(minutes=1), "due"))
        return real(tx, wanted, **given)

    monkeypatch.setattr(bulk_jobs, "search_runs", search)
    run_bulks(manual)

    assert run.refresh().state == "cancelled"
    assert bulk.result(timeout=0) == {"matched": 1, "done": 1, "skipped": 0}


def test_all_matching_runs_are_run_again_once(hf: Holdfast, manual: Manual, work: Job[..., Any]) -> None:
    runs = work.submit_many([{"n": number} for number in range(11)])
    fail(manual, 9)
    bulk = hf.bulk.again(RunFilter(state="failed"), by="ann")
    later = work.submit(n=99)
    hf.cancel(later.id)

    run_bulks(manual)

    assert bulk.result(timeout=0) == {"matched": 9, "done": 9, "skipped": 0}
    again = Counter(run.again_of for run in hf.search(RunFilter(job="work")).items if run.again_of)
    assert again == dict.fromkeys([run.id for run in runs[:9]], 1)
    progress = [event.data for event in hf.timeline(bulk.id) if event.kind == "PROGRESS"]
    assert progress[-1] == {"done": 9, "total": 9, "note": "9 done, 0 skipped"}


def test_a_bulk_operation_of_a_lost_worker_continues_where_it_stopped(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Job[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker is lost after the third page; the completed pages are neither repeated nor counted again."""
    runs = work.submit_many([{"n": number} for number in range(20)])
    fail(manual, 20)
    bulk = hf.bulk.again(RunFilter(state="failed"))
    pages = 0

    def page(*given: Any, real: Any = bulk_jobs._do) -> Any:
        nonlocal pages
        pages += 1
        if pages == 4:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(bulk_jobs, "_do", page)
    worker = manual.worker("lost", queues=["operations"])
    [claim] = worker.claim()
    job = hf.jobs[bulk_jobs.AGAIN]
    context = worker._context(claim)
    with pytest.raises(KeyboardInterrupt):
        job.fn(ctx=context, filter={"state": "failed"})
    clock.advance(hf.settings.lease * 2)
    assert len(hf.do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=10))) == 1
    made = hf.count(RunFilter(job="work"))
    with pytest.raises(LeaseLost):  # the lost worker can't write any more
        job.fn(ctx=context, filter={"state": "failed"})
    assert hf.count(RunFilter(job="work")) == made
    run_bulks(manual)

    assert bulk.result(timeout=0) == {"matched": 20, "done": 20, "skipped": 0}
    again = Counter(run.again_of for run in hf.search(RunFilter(job="work"), limit=100).items if run.again_of)
    assert again == dict.fromkeys([run.id for run in runs], 1)


def test_a_bulk_operation_waits_while_the_queue_is_full(
    hf: Holdfast, manual: Manual, clock: FakeClock, work: Job[..., Any]
) -> None:
    work.submit_many([{"n": number} for number in range(6)])
    fail(manual, 6)
    hf.queues.limit("default", max_queued=4)
    bulk = hf.bulk.again(RunFilter(state="failed"))

    for _ in range(20):
        run_bulks(manual)
        if hf.get(bulk.id).state == "succeeded":
            break
        manual.run_all()
        clock.advance(timedelta(minutes=5))
        manual.orchestrate()

    manual.run_all()
    assert bulk.result(timeout=0) == {"matched": 6, "done": 6, "skipped": 0}
    assert hf.count(RunFilter(state="succeeded", job="work")).number == 6


def test_a_bulk_operation_reruns_builds_and_pipelines_and_skips_their_parts(
    hf: Holdfast, manual: Manual, work: Job[..., Any]
) -> None:
    @hf.build(name="environment")
    def environment(fingerprint: str) -> str:
        return fingerprint

    video = hf.pipeline("video")

    @video.stage()
    def script(text: str) -> str:
        return text

    made, seen = environment.submit(fingerprint="f"), video.submit(text="t")
    manual.run_all()
    bulk = hf.bulk.again(RunFilter(state="succeeded"))
    run_bulks(manual)

    assert bulk.result(timeout=0) == {"matched": 3, "done": 2, "skipped": 1}
    assert hf.builds.get(made.id).run_id != made.id
    assert [run.again_of for run in hf.pipelines.list()] == [seen.id, None]


def test_the_counts_of_a_bulk_operation_can_be_read_first(hf: Holdfast, manual: Manual, work: Job[..., Any]) -> None:
    work.submit_many([{"n": number} for number in range(5)])
    fail(manual, 2)

    assert hf.bulk.counts(RunFilter()) == {"cancel": Count(3, False), "again": Count(2, False)}
    assert hf.bulk.counts(RunFilter(state="failed")) == {"cancel": Count(0, False), "again": Count(2, False)}


def test_bulk_operations_do_not_affect_each_other(hf: Holdfast, manual: Manual, work: Job[..., Any]) -> None:
    first = hf.bulk.cancel(RunFilter(job="nothing"))
    second = hf.bulk.cancel(RunFilter())
    run_bulks(manual)

    assert (first.refresh().state, second.refresh().state) == ("succeeded", "succeeded")
    assert second.result(timeout=0) == {"matched": 0, "done": 0, "skipped": 0}


def test_every_worker_executes_bulk_operations_in_addition_to_its_own_queues(live: Holdfast) -> None:
    @live.job(name="work")
    def work() -> None: ...

    waiting = work.submit()
    with live.worker(queues=["elsewhere"]):
        bulk = live.bulk.cancel(RunFilter(), by="ann")
        assert bulk.result(timeout=60) == {"matched": 1, "done": 1, "skipped": 0}
    assert waiting.refresh().state == "cancelled"


def test_a_worker_at_its_concurrency_still_executes_one_bulk_operation(
    live: Holdfast, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, searching, search_on = (
        threading.Semaphore(0),
        threading.Semaphore(0),
        threading.Event(),
        threading.Event(),
    )

    @live.job(name="hold")
    def hold() -> None:
        begun.release()
        assert go.acquire(timeout=60)

    def search(*given: Any, real: Any = search_runs, **named: Any) -> Any:
        searching.set()
        assert search_on.wait(60)
        return real(*given, **named)

    monkeypatch.setattr(bulk_jobs, "search_runs", search)
    with live.worker(concurrency=2):
        held = hold.submit_many([{}] * 4)
        assert all(begun.acquire(timeout=60) for _ in range(2))
        bulks = [live.bulk.cancel(RunFilter(job="nothing")) for _ in range(2)]
        assert searching.wait(60), "a bulk operation must start although the worker is full"
        assert "at any moment" in live.why(bulks[1].id).reasons[0]

        go.release()
        assert begun.acquire(timeout=60), "a run must start when another has ended"
        assert not begun.acquire(timeout=0.5), "only one run may start"
        runs: list[Run[Any]] = [*held, *bulks]
        states = Counter(run.refresh().state for run in runs)
        assert states == {"succeeded": 1, "running": 3, "queued": 2}

        search_on.set()
        go.release(3)
        for run in runs:
            run.result(timeout=60)
