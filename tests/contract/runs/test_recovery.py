"""Recovery: runs of lost workers, timeouts and cancels."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Holdfast, Retry
from holdfast.orchestrator import recover
from holdfast.runs.outcomes import Release, RetryLater, Succeeded
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


def job(hf: Holdfast, **options: Any) -> Any:
    @hf.job(name="work", **options)
    def work(number: int = 0) -> str:
        return "done"

    return work


def lose_a_worker(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    """Let a worker claim a run and disappear; then recover its lease."""
    assert manual.worker("lost").claim()
    clock.advance(hf.settings.lease + timedelta(seconds=1))
    manual.orchestrate()


@pytest.mark.contract("L6", "L7", "S3")
def test_an_expired_lease_makes_the_run_ready_again_with_a_diagnostic(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    run = job(hf).submit()
    manual.worker("lost").claim()
    clock.advance(hf.settings.lease)
    assert manual.orchestrate() == 0, "a lease must not be recovered before it has expired"
    clock.advance(timedelta(microseconds=1))
    assert manual.orchestrate() == 1

    assert run.refresh().snapshot.place == "ready"
    assert database.count("leases") == 0
    [event] = [event for event in run.timeline() if event.kind == "RUN_TAKEN_OVER"]
    assert event.claim == 1
    assert (event.data["holder"], event.data["decision"]) == ("lost", "requeued")
    manual.run_all()
    assert run.result(timeout=1) == "done"
    assert (run.snapshot.claim, run.snapshot.attempt, run.snapshot.takeovers) == (2, 1, 1)
    assert hf.verify() == []


@pytest.mark.contract("L6")
def test_a_taken_over_run_keeps_its_key(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    work = job(hf, key="number")
    first, second = work.submit(1), work.submit(1)
    lose_a_worker(hf, manual, clock)

    [claim] = manual.worker("next").claim(limit=5)
    assert claim.lease.run_id == first.id
    assert second.refresh().state == "queued"
    assert hf.verify() == []


@pytest.mark.contract("P5", "Q14")
def test_on_crash_fail_ends_the_run_as_process_terminated(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    run = job(hf, on_crash="fail").submit()
    lose_a_worker(hf, manual, clock)

    assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "PROCESS_TERMINATED")
    assert "lost" in str(run.snapshot.error)
    assert manual.run_all() == 0


@pytest.mark.contract("X5", "X4")
def test_on_crash_retry_counts_as_a_failed_attempt(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    run = job(hf, on_crash="retry", max_attempts=3, retry=Retry(delay=timedelta(0))).submit()
    for number in range(1, 4):
        lose_a_worker(hf, manual, clock)
        assert run.refresh().snapshot.attempt == number
        assert run.state == ("queued" if number < 3 else "failed")

    assert run.snapshot.failure_type == "PROCESS_TERMINATED"
    assert hf.verify() == []


@pytest.mark.contract("X5")
def test_a_run_past_its_timeout_is_retried_and_fails_after_its_last_attempt(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    """Each of five attempts times out two hours after its start."""
    options = {"timeout": timedelta(hours=2), "on_timeout": "retry", "on_crash": "retry", "max_attempts": 5}
    run = job(hf, **options, retry=Retry(delay=timedelta(0))).submit()
    for number in range(1, 6):
        worker = manual.worker(f"slow{number}")
        [claim] = worker.claim()
        for _ in range(int(timedelta(hours=2) / timedelta(seconds=600))):
            clock.advance(600)
            worker.renew(claim)
        clock.advance(60)
        manual.orchestrate()
        assert run.refresh().snapshot.attempt == number
        assert run.state == ("queued" if number < 5 else "timed_out")
    assert "Timed out after 2 h" in str(run.snapshot.error)


@pytest.mark.contract("X5", "Q14")
def test_several_orchestrators_at_once_recover_a_run_once(url: str, database: Database) -> None:
    clock = FakeClock()
    engines = [Holdfast(url, clock=clock) for _ in range(2)]
    works = [job(hf, on_crash="retry", max_attempts=100, retry=Retry(delay=timedelta(hours=1))) for hf in engines]
    works[0].submit_many([{"number": number} for number in range(40)])
    assert len(Manual(engines[0]).worker("lost").claim(limit=40)) == 40
    clock.advance(100)

    with ThreadPoolExecutor(6) as pool:
        moved = list(
            pool.map(lambda n: engines[n % 2].do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=7)), range(24))
        )
    moved.append(engines[0].do(lambda tx: recover.expired(tx, wait=timedelta(0), limit=100)))

    assert sum(map(len, moved)) == 40
    assert database.all("select distinct attempt, takeovers from holdfast_waits") == [(1, 1)]
    assert database.count("events") == 40
    assert engines[0].verify() == []
    for hf in engines:
        hf.close()


@pytest.mark.contract("L6", "L5")
def test_recovery_keeps_a_lease_that_was_renewed_after_it_was_read(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    run = job(hf).submit()
    worker = manual.worker()
    [claim] = worker.claim()
    clock.advance(2 * hf.settings.lease)
    seen = hf.read(lambda tx: tx.all("find_all_leases", limit=10))
    worker.renew(claim)

    assert hf.do(lambda tx: recover.take_away(tx, seen, reason="too late")) == []
    worker.finish(claim)
    assert run.refresh().state == "succeeded"


@pytest.mark.contract("S3", "L7")
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_a_run_that_kills_its_workers_fails_after_a_few_takeovers(
    hf: Holdfast, manual: Manual, clock: FakeClock, limit: int
) -> None:
    run = job(hf, max_takeovers=limit).submit()
    for _ in range(limit):
        lose_a_worker(hf, manual, clock)
        assert run.refresh().state == "queued"
    lose_a_worker(hf, manual, clock)

    assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "TAKEOVER_LIMIT")
    assert f"{limit + 1} workers were lost" in str(run.snapshot.error)


@pytest.mark.contract("P7", "Q13", "Q14")
def test_any_orchestrator_times_out_a_run_whose_lease_lasted_to_its_deadline(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    run = job(hf).submit()
    started = clock.now()
    worker = manual.worker("gone")
    [claim] = worker.claim()
    for _ in range(11):
        clock.advance(10)
        worker.renew(claim)  # the last renewal reaches beyond the deadline
    clock.advance(hf.settings.kill_grace + 2 * hf.settings.lease)
    manual.orchestrate()

    seen = run.refresh().snapshot
    assert (seen.state, seen.failure_type, seen.started_at) == ("timed_out", "TIMED_OUT", started)
    assert "Timed out after 2 min" in str(seen.error)
    assert "gone" in str(seen.error)
    assert claim.lease.deadline_at == started + timedelta(seconds=120)


OUTAGE = timedelta(hours=1)


@pytest.mark.contract("L6", "L7", "Q14")
@pytest.mark.parametrize(
    ("on_crash", "state", "attempt"), [("requeue", "queued", 0), ("retry", "queued", 1), ("fail", "failed", 1)]
)
def test_a_worker_lost_before_the_deadline_counts_as_crashed_even_if_noticed_late(
    hf: Holdfast, manual: Manual, clock: FakeClock, on_crash: str, state: str, attempt: int
) -> None:
    """The machine was off for longer than the timeout of the run, which must not count as a timeout."""
    run = job(hf, timeout=60, on_crash=on_crash, max_attempts=2).submit()
    manual.worker("lost").claim()
    clock.advance(OUTAGE)
    assert manual.orchestrate() >= 1

    seen = run.refresh().snapshot
    assert (seen.state, seen.attempt) == (state, attempt)
    assert seen.failure_type == ("PROCESS_TERMINATED" if state == "failed" else None)


@pytest.mark.contract("L7", "P7")
@pytest.mark.parametrize(("from_the_deadline", "state"), [(-1, "queued"), (0, "timed_out"), (1, "timed_out")])
def test_a_lease_that_ended_before_the_deadline_is_no_timeout(
    hf: Holdfast, manual: Manual, clock: FakeClock, from_the_deadline: int, state: str
) -> None:
    run = job(hf, timeout=60, on_crash="requeue").submit()
    [claim] = manual.worker("lost").claim()
    assert claim.lease.deadline_at is not None
    expires_at = claim.lease.deadline_at + timedelta(microseconds=from_the_deadline)
    row = {"run_id": claim.lease.run_id, "claim": claim.lease.claim, "expires_at": expires_at}
    hf.do(lambda tx: tx.all("renew_leases", rows=[row], holder="lost"))
    clock.advance(OUTAGE)
    manual.orchestrate()
    assert run.refresh().state == state


@pytest.mark.contract("L6", "L7")
def test_an_expired_lease_is_marked_first_and_recovered_by_a_later_check(url: str, database: Database) -> None:
    """No process needs to live as long as a lease: each process in this test checks once and then ends."""
    clock = FakeClock()
    with Holdfast(url, clock=clock) as hf:
        run = job(hf).submit()
        Manual(hf).worker("lost").claim()
    clock.advance(hf.settings.lease + timedelta(seconds=1))
    wait, taken = hf.settings.takeover_wait, []
    for _ in range(3):
        with Holdfast(url, clock=clock) as short_lived:
            job(short_lived)
            taken.append(Manual(short_lived).orchestrate(takeover_wait=wait))
        clock.advance(wait / 2)
    assert taken == [0, 0, 1]
    with Holdfast(url, clock=clock) as hf:
        assert hf.snapshot(run.id).place == "ready"


@pytest.mark.contract("L6", "L5")
def test_a_worker_that_renews_a_lease_marked_as_expired_keeps_it(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database
) -> None:
    """The worker could not write for a long time; its renewal clears the mark, so it keeps its run."""
    run = job(hf, timeout=None).submit()
    worker, wait = manual.worker(), hf.settings.takeover_wait
    [claim] = worker.claim()
    clock.advance(10 * hf.settings.lease)
    assert manual.orchestrate(takeover_wait=wait) == 0
    assert database.all("select expired_seen_at from holdfast_leases") != [(None,)]
    clock.advance(hf.settings.renew_every)
    worker.renew(claim)
    assert database.all("select expired_seen_at from holdfast_leases") == [(None,)]
    clock.advance(wait)
    assert manual.orchestrate(takeover_wait=wait) == 0
    worker.finish(claim)
    assert run.refresh().state == "succeeded"


@pytest.mark.contract("P7")
def test_the_timeout_is_120_seconds_by_default(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    work = job(hf)
    default, longer, none = work.submit(), work.using(timeout=600).submit(), work.using(timeout=60.5).submit()
    manual.worker().claim(limit=5)
    now = clock.now()
    assert [run.refresh().snapshot.deadline_at for run in (default, longer, none)] == [
        now + timedelta(seconds=120),
        now + timedelta(seconds=600),
        now + timedelta(seconds=60.5),
    ]

    @hf.job(name="endless", timeout=None)
    def endless() -> None: ...

    run = endless.submit()
    [claim] = manual.worker().claim()
    assert claim.lease.deadline_at is None
    assert run.refresh().snapshot.deadline_at is None


@pytest.mark.contract("P7")
def test_the_timeout_counts_from_the_start_of_each_attempt(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    run = job(hf, max_attempts=3, on_crash="requeue").submit()
    for number, end in enumerate(
        (RetryLater("not yet", timedelta(seconds=60)), None, Release("shutdown"), None), start=1
    ):
        clock.advance(timedelta(days=3))
        manual.orchestrate()
        worker = manual.worker(f"of claim {number}")
        [claim] = worker.claim()
        assert (claim.lease.claim, claim.lease.deadline_at) == (number, clock.now() + timedelta(seconds=120))
        assert run.refresh().snapshot.deadline_at == clock.now() + timedelta(seconds=120)
        clock.advance(100)  # most of the timeout of this attempt; the next one has its full timeout
        if end is not None:
            worker.finish(claim, end)
    assert run.refresh().state == "running"


# Cancel


@pytest.mark.contract("Q15")
@pytest.mark.parametrize("place", ["ready", "delayed", "key", "dependency", "retry"])
def test_a_run_that_has_not_started_is_cancelled_at_once_and_never_runs(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, place: str
) -> None:
    ran: list[str] = []

    @hf.job(name="work", key="{key}", max_attempts=2)
    def work(key: str, name: str) -> None:
        ran.append(name)
        if name == "fails":
            raise ValueError

    match place:
        case "ready":
            run = work.submit("k", "x")
        case "delayed":
            run = work.using(delay=60).submit("k", "x")
        case "key":
            work.submit("k", "first")
            run = work.submit("k", "x")
        case "dependency":
            run = work.using(depends_on=[work.submit("other", "first")]).submit("k", "x")
        case _:
            run = work.submit("k", "fails")
            manual.run_all()
            ran.clear()
    assert run.refresh().state == "queued"

    assert run.cancel(reason="changed my mind") == "cancelled"

    assert (run.refresh().state, run.snapshot.error) == ("cancelled", "changed my mind")
    follower = work.submit("k", "follower")
    clock.advance(6000)
    manual.run_all()
    assert "x" not in ran
    assert "fails" not in ran
    assert follower.refresh().state == "succeeded"
    assert database.count("dependencies") == 0
    assert hf.verify() == []


@pytest.mark.contract("Q15")
def test_a_cancelled_running_run_is_stopped_by_its_worker(hf: Holdfast, manual: Manual, clock: FakeClock) -> None:
    run = job(hf).submit()
    worker = manual.worker()
    [claim] = worker.claim()

    assert run.cancel(reason="enough") == "running"
    first = run.refresh().snapshot.cancel_requested_at
    clock.advance(1)
    assert run.cancel(reason="really") == "running"

    assert run.refresh().snapshot.cancel_requested_at == first, "the first request counts"
    renewal = worker.renew(claim)
    assert (renewal.cancelled, renewal.reason) == (True, "enough")
    assert "CANCEL_REQUESTED" in [event.kind for event in run.timeline()]


@pytest.mark.contract("Q15", "S3")
@pytest.mark.parametrize("by", ["an expired lease", "a retry", "a release"])
@pytest.mark.parametrize("crash", ["requeue", "retry", "fail"])
def test_an_accepted_cancel_is_never_lost(hf: Holdfast, manual: Manual, clock: FakeClock, by: str, crash: str) -> None:
    run = job(hf, on_crash=crash, max_attempts=5).submit()
    worker = manual.worker()
    [claim] = worker.claim()
    run.cancel(reason="enough")
    match by:
        case "an expired lease":
            clock.advance(2 * hf.settings.lease)
            manual.orchestrate()
        case "a retry":
            worker.finish(claim, RetryLater("failed", timedelta(0)))
        case _:
            worker.finish(claim, Release("shutdown"))

    assert (run.refresh().state, run.snapshot.error) == ("cancelled", "enough")
    assert manual.run_all() == 0


@pytest.mark.contract("Q15")
def test_a_run_that_finished_before_it_saw_the_cancel_keeps_its_result(hf: Holdfast, manual: Manual) -> None:
    run = job(hf).submit()
    worker = manual.worker()
    [claim] = worker.claim()
    run.cancel()
    worker.finish(claim, Succeeded('"done"'))
    assert run.refresh().state == "succeeded"


@pytest.mark.contract("Q15", "P8")
def test_cancelling_an_ended_run_returns_its_outcome(hf: Holdfast, manual: Manual) -> None:
    run = job(hf).submit()
    manual.run_all()
    assert run.cancel() == "succeeded"


@pytest.mark.contract("S5")
def test_a_released_run_uses_up_no_attempt(hf: Holdfast, manual: Manual) -> None:
    run = job(hf).submit()
    worker = manual.worker("leaving")
    [claim] = worker.claim()
    worker.finish(claim, Release("the worker shut down"))

    seen = run.refresh().snapshot
    assert (seen.place, seen.claim, seen.attempt, seen.takeovers) == ("ready", 1, 0, 0)
    manual.run_all()
    assert (run.result(timeout=1), run.snapshot.attempt) == ("done", 1)
    assert [event.kind for event in run.timeline()] == [
        "RUN_QUEUED",
        "RUN_STARTED",
        "RUN_RELEASED",
        "RUN_STARTED",
        "RUN_SUCCEEDED",
    ]
