"""Dependencies: a run starts once, after all runs that it depends on have ended, and can read their results."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.contract.helpers.waiting import hold_past_the_deadline

from holdfast import Context, Holdfast
from holdfast.orchestrator import promote
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def work(hf: Holdfast) -> Any:
    @hf.job(name="work")
    def work(name: str, fail: bool = False) -> str:
        if fail:
            raise ValueError(name)
        return name

    return work


@pytest.mark.contract("S3", "L2")
def test_a_run_starts_after_all_its_dependencies_have_succeeded(hf: Holdfast, manual: Manual, work: Any) -> None:
    first, second = work.submit("first"), work.submit("second")
    last = work.using(depends_on=[first, second.id]).submit("last")
    worker = manual.worker()
    claims = worker.claim(limit=5)
    assert [claim.lease.run_id for claim in claims] == [first.id, second.id]

    worker.finish(claims[0])
    manual.orchestrate()
    assert last.refresh().snapshot.place == "waits"
    worker.finish(claims[1])
    assert last.refresh().snapshot.place == "waits", "only an orchestrator makes dependent runs ready"
    manual.orchestrate()

    assert last.refresh().snapshot.place == "ready"
    manual.run_all()
    assert last.result(timeout=1) == "last"
    assert hf.verify() == []


@pytest.mark.contract("S3")
@pytest.mark.parametrize("ending", ["failed", "cancelled", "timed_out"])
def test_a_failed_dependency_fails_the_runs_that_required_its_success(
    hf: Holdfast, manual: Manual, clock: FakeClock, database: Database, work: Any, ending: str
) -> None:
    needed = work.submit("needed", fail=True)
    other = work.using(delay=timedelta(days=1)).submit("other")
    strict = work.using(depends_on=[needed, other]).submit("strict")
    downstream = work.using(depends_on=[strict]).submit("downstream")
    tolerant = work.using(depends_on={needed: False}).submit("tolerant")
    match ending:
        case "failed":
            manual.run_all()
        case "cancelled":
            needed.cancel()
        case "timed_out":
            hold_past_the_deadline(manual.worker(), manual.worker().claim()[0], clock)
    manual.run_all()

    assert (strict.refresh().state, strict.snapshot.failure_type) == ("failed", "DEPENDENCY_FAILED")
    assert needed.id in str(strict.snapshot.error)
    assert (downstream.refresh().state, downstream.snapshot.failure_type) == ("failed", "DEPENDENCY_FAILED")
    assert tolerant.result(timeout=1) == "tolerant"
    assert database.count("dependencies") == 0
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_a_dependency_that_has_already_ended_is_met_at_once(hf: Holdfast, manual: Manual, work: Any) -> None:
    done = work.submit("done")
    manual.run_all()
    late = work.using(depends_on=[done]).submit("late")
    manual.run_all()
    assert late.result(timeout=1) == "late"


@pytest.mark.contract("S3", "P9")
def test_a_run_waits_for_its_dependencies_its_key_and_its_due_time(
    hf: Holdfast, manual: Manual, clock: FakeClock
) -> None:
    @hf.job(name="keyed", key="{key}")
    def keyed(key: str) -> None: ...

    need = keyed.submit("other")
    run = keyed.using(depends_on=[need], delay=60).submit("k")
    holder = keyed.submit("k")
    worker = manual.worker()
    claims = {claim.lease.run_id: claim for claim in worker.claim(limit=5)}
    assert claims.keys() == {need.id, holder.id}

    worker.finish(claims[need.id])
    manual.orchestrate()
    assert "due at" in run.why().reasons[0]
    for _ in range(6):
        clock.advance(10)
        worker.renew(claims[holder.id])
        manual.orchestrate()
    assert f"held by run {holder.id}" in run.why().reasons[0]
    worker.finish(claims[holder.id])
    manual.orchestrate()
    assert run.refresh().snapshot.place == "ready"
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_a_run_becomes_ready_even_if_the_notification_about_its_dependency_is_lost(
    hf: Holdfast, manual: Manual, database: Database, work: Any
) -> None:
    """The check flag is lost and no notification came; the pass over all dependencies still finds the waiting run."""
    first = work.submit("first")
    waiter = work.using(depends_on=[first]).submit("waiter")
    manual.orchestrate()
    database.run("update holdfast_waits set unchecked = 0")
    [claim] = manual.worker().claim()
    manual.worker().finish(claim)

    assert hf.do(lambda tx: promote.check_waiting(tx, limit=10)) == 0
    hf.do(lambda tx: promote.dependencies_after(tx, ("", ""), limit=1000))
    assert waiter.refresh().snapshot.place == "ready"


@pytest.mark.contract("S3", "L2")
def test_two_orchestrators_with_two_dependencies_of_one_run_promote_it_once(url: str, database: Database) -> None:
    """To prevent lost updates, each orchestrator subtracts only the dependencies that its own DELETE returned."""
    hf = Holdfast(url)

    @hf.job(name="work")
    def work(number: int) -> None: ...

    for _ in range(10):
        needed = work.submit_many([{"number": n} for n in range(4)])
        waiter = work.using(depends_on=needed).submit(99)
        manual = Manual(hf)
        worker = manual.worker()
        for claim in worker.claim(limit=4):
            worker.finish(claim)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda run: hf.do(lambda tx: promote.dependents(tx, [run.id], limit=10)), needed))
        assert waiter.refresh().snapshot.place == "ready"
        manual.run_all()
    assert database.count("dependencies") == 0
    assert hf.verify() == []
    hf.close()


@pytest.mark.contract("S3", "P3")
def test_a_waiting_run_that_changes_during_a_check_is_checked_again(postgres_url: str) -> None:
    with Holdfast(postgres_url) as hf, psycopg.connect(postgres_url) as raw:

        @hf.job(name="keyed", key="k")
        def keyed(k: str) -> None: ...

        @hf.job(name="plain")
        def plain() -> None: ...

        manual = Manual(hf)
        hand = manual.worker("w", jobs=["keyed"])
        other = manual.worker("w", jobs=["plain"])
        keyed.submit(k="K")
        [holding] = hand.claim()
        needed = plain.submit()
        [running] = other.claim()
        earlier = plain.using(depends_on=[plain.submit()]).submit()
        waiting = keyed.using(depends_on=[needed]).submit(k="K")

        raw.execute("select 1 from holdfast_waits where run_id = %s for update", [earlier.id])
        looking = threading.Thread(target=lambda: hf.do(lambda tx: promote.mark_checked(tx, limit=1000)))
        looking.start()
        blocked = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
        with psycopg.connect(postgres_url, autocommit=True) as watcher:
            while watcher.execute(blocked).fetchone() is None:
                threading.Event().wait(0.01)
        hand.finish(holding)
        hf.do(lambda tx: promote.assign_key_locks(tx, limit=1000))
        other.finish(running)
        meeting = threading.Thread(target=lambda: hf.do(lambda tx: promote.dependents(tx, [needed.id], limit=1000)))
        meeting.start()
        raw.commit()
        looking.join()
        meeting.join()

        manual.promote()
        manual.promote()
        assert [claim.lease.run_id for claim in hand.claim()] == [waiting.id]
        assert hf.verify() == []


@pytest.mark.contract("S3")
def test_a_run_reads_the_results_of_its_dependencies_in_order(hf: Holdfast, manual: Manual) -> None:
    seen: list[Any] = []

    @hf.job(name="part")
    def part(name: str, fail: bool = False) -> dict[str, str]:
        if fail:
            raise ValueError(name)
        return {"name": name}

    @hf.job(name="whole")
    def whole(ctx: Context) -> None:
        seen.append((ctx.run.depends_on, ctx.dependencies))

    first, second, broken = part.submit("first"), part.submit("second"), part.submit("broken", fail=True)
    run = whole.using(depends_on={second: True, broken: False, first: True}).submit()
    manual.run_all()

    assert seen == [((second.id, broken.id, first.id), ({"name": "second"}, None, {"name": "first"}))]
    assert run.refresh().snapshot.depends_on == (second.id, broken.id, first.id)


@pytest.mark.contract("S3")
def test_jobs_in_threads_and_in_the_event_loop_read_dependency_results_alike(live: Holdfast) -> None:
    @live.job(name="part")
    def part() -> list[int]:
        return [1, 2]

    @live.job(name="plain")
    def plain(ctx: Context) -> Any:
        return ctx.dependencies[0]

    @live.job(name="in_loop")
    async def in_loop(ctx: Context) -> Any:
        return ctx.dependencies[0]

    needed = part.submit()
    waiting = [job.using(depends_on=[needed]).submit() for job in (plain, in_loop)]
    with live.worker():
        assert [run.result(timeout=60) for run in waiting] == [[1, 2], [1, 2]]


def test_a_run_submitted_again_reads_the_same_dependency_results(hf: Holdfast, manual: Manual) -> None:
    part = hf.job(name="part")(lambda: 5)

    @hf.job(name="whole")
    def whole(ctx: Context) -> list[int]:
        return list(ctx.dependencies)

    run = whole.using(depends_on=[part.submit()]).submit()
    manual.run_all()
    again = run.again()
    manual.run_all()
    assert again.result(timeout=1) == run.result(timeout=1) == [5]
