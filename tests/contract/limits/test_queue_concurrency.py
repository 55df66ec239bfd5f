"""Queue concurrency: how many runs of a queue run at once, over all workers."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from tests.fixtures import Database

from holdfast import Holdfast, Run
from holdfast.runs.outcomes import Failed, Outcome, Release, RetryLater, Succeeded
from holdfast.testing import FakeClock, Manual

OUTCOMES: list[Outcome] = [
    Succeeded(),
    Failed("ERROR", "no"),
    Release("shutdown"),
    RetryLater("later", timedelta(seconds=5)),
]


@pytest.fixture
def job(hf: Holdfast) -> Any:
    hf.queue("q", concurrency=2)
    hf.start()
    return hf.job(name="work", queue="q", max_attempts=9)(lambda: None)


@pytest.mark.contract("Q9")
@pytest.mark.parametrize("oldest_first", [False, True])
def test_no_worker_claims_beyond_the_concurrency_of_a_queue(job: Any, manual: Manual, oldest_first: bool) -> None:
    runs = job.submit_many([{}] * 5)

    first = manual.worker("a", queues=["q"]).claim(limit=5, oldest_first=oldest_first)

    assert [claim.lease.run_id for claim in first] == [run.id for run in runs[:2]]
    assert [claim.lease.permit for claim in first] == [1, 2]
    assert manual.worker("b", queues=["q"]).claim(limit=5, oldest_first=oldest_first) == []


@pytest.mark.contract("Q9")
@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: type(outcome).__name__)
def test_every_end_of_a_lease_frees_its_permit_and_notifies(
    job: Any, hf: Holdfast, manual: Manual, outcome: Outcome
) -> None:
    job.submit_many([{}] * 4)
    worker = manual.worker("a", queues=["q"])
    [one, two] = worker.claim(limit=5)
    notified: set[str] = set()
    hf.notifier.listen(lambda names, ended: notified.update(names))

    worker.finish(one, outcome)

    assert "q" in notified
    [next_one] = manual.worker("b", queues=["q"]).claim(limit=5)
    assert next_one.lease.permit == one.lease.permit
    assert two.lease.permit != next_one.lease.permit


@pytest.mark.contract("Q9")
def test_a_takeover_frees_the_permit_of_a_lost_worker(job: Any, hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    job.submit_many([{}] * 3)
    manual.worker("lost", queues=["q"]).claim(limit=5)
    clock.advance(hf.settings.lease * 2)
    notified: set[str] = set()
    hf.notifier.listen(lambda names, ended: notified.update(names))
    manual.orchestrate()
    assert "q" in notified
    assert len(manual.worker("b", queues=["q"]).claim(limit=5)) == 2


@pytest.mark.contract("Q9")
def test_the_database_refuses_a_permit_that_is_used_twice(job: Any, manual: Manual, database: Database) -> None:
    job.submit_many([{}] * 2)
    manual.worker("a", queues=["q"]).claim(limit=5)
    with pytest.raises(database.errors, match=r"(?i)unique|duplicate"):
        database.run("update holdfast_leases set permit = 1")


@pytest.mark.contract("Q9", "Q12")
def test_a_worker_that_loses_the_race_for_a_permit_releases_its_run_at_once(
    job: Any, hf: Holdfast, manual: Manual, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker takes the permit after this claim has read the permits; the outdated reading is simulated."""
    [run] = job.submit_many([{}])
    [late] = hf.jobs["work"].submit_many([{}])
    manual.worker("a", queues=["q"]).claim()
    monkeypatch.setattr(
        "holdfast.runs.claim.number_permits",
        lambda tx, entries, limits: ({entry.run_id: 1 for entry in entries}, []),  # an outdated reading
    )
    notified: set[str] = set()
    hf.notifier.listen(lambda names, ended: notified.update(names))

    assert manual.worker("b", queues=["q"]).claim(limit=5) == []

    found = hf.snapshot(late.id)
    assert (found.place, found.claim, found.attempt) == ("ready", 0, 0)
    assert "q" in notified
    assert [event.kind for event in hf.timeline(late.id)] == ["RUN_QUEUED"]
    assert hf.snapshot(run.id).place == "leases"


@pytest.mark.contract("Q9")
def test_a_run_waits_if_sql_has_inserted_a_lease_of_its_key(hf: Holdfast, manual: Manual, database: Database) -> None:
    hf.queue("q", concurrency=2)
    job = hf.job(name="keyed", queue="q", key="k")(lambda k: None)
    run, other = job.submit(k="x"), job.submit(k="x")
    database.run(
        "insert into holdfast_leases (run_id, job, queue, rank, run_key, claim, attempt, takeovers, holder, "
        "started_at, expires_at) select id, job, queue, 0, run_key, 1, 1, 0, 'by hand', created_at, created_at "
        f"from holdfast_runs where id = '{other.id}'"
    )

    assert manual.worker("b", queues=["q"]).claim() == []

    waiting = hf.snapshot(run.id)
    assert (waiting.place, waiting.reason) == ("waits", "another lease already holds its key")


@pytest.mark.contract("Q9")
def test_a_limit_set_while_runs_are_running_counts_them(hf: Holdfast, manual: Manual) -> None:
    job = hf.job(name="work", queue="q")(lambda: None)
    job.submit_many([{}] * 6)
    worker = manual.worker("a", queues=["q"])
    running = worker.claim(limit=3)

    hf.queues.limit("q", concurrency=4)
    assert len(worker.claim(limit=5)) == 1
    hf.queues.limit("q", concurrency=1)
    worker.finish(running[0])
    assert worker.claim(limit=5) == []
    hf.queues.limit("q", concurrency=None)
    assert len(worker.claim(limit=5)) == 2


def test_a_limited_queue_does_not_stop_another(job: Any, hf: Holdfast, manual: Manual) -> None:
    free = hf.job(name="free", queue="free")(lambda: None)
    job.submit_many([{}] * 5)
    free.submit_many([{}] * 5)
    claims = manual.worker("a", queues=["q", "free"]).claim(limit=6)
    assert Counter(claim.lease.entry.queue for claim in claims) == {"q": 2, "free": 4}


@pytest.mark.contract("Q9", "S3")
def test_two_live_workers_keep_to_the_limit_and_drain_the_queue(live: Holdfast) -> None:
    live.queue("q", concurrency=3)
    lock, now, most = threading.Lock(), 0, 0

    @live.job(name="work", queue="q")
    def work() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        threading.Event().wait(0.01)
        with lock:
            now -= 1

    runs: list[Run[Any]] = work.submit_many([{}] * 60)
    with live.worker(queues=["q"], concurrency=8), live.worker(queues=["q"], concurrency=8):
        for run in runs:
            run.result(timeout=60)
    assert live.verify() == []
    assert most == 3


def test_why_says_that_the_concurrency_of_a_queue_is_used_up(job: Any, hf: Holdfast, manual: Manual) -> None:
    runs = job.submit_many([{}] * 3)
    manual.worker("a", queues=["q"]).claim(limit=5)
    reason = hf.why(runs[2].id).reasons[0]
    assert reason == f"queue q has reached its concurrency of 2 with runs {runs[0].id} and {runs[1].id}; it is next"
