"""Order of run ids: ids and times follow the order of commits, across processes."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import Holdfast, StoreUnavailable
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

PROCESSES, THREADS, EACH = 3, 8, 25


def job_of(hf: Holdfast) -> Any:
    @hf.job(name="work")
    def work(number: int = 0) -> None: ...

    return work


@pytest.mark.contract("P9", "S3")
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_ids_are_in_the_order_of_commits_across_threads_and_processes(url: str, database: Database) -> None:
    """Each submission writes a numbered audit event in the same transaction, which shows the order of commits."""
    go, ready = os.pipe(), os.pipe()
    children = []
    for _ in range(PROCESSES):
        if (pid := os.fork()) == 0:
            code = 1
            try:
                with Holdfast(url) as hf, ThreadPoolExecutor(THREADS) as pool:
                    work = job_of(hf)
                    hf.start()
                    os.write(ready[1], b".")
                    os.read(go[0], 1)

                    def submit(number: int, work: Any = work, hf: Holdfast = hf) -> None:
                        for _ in range(EACH):
                            threading.Event().wait(random.random() / 500)
                            work.submit_by("someone", {"number": number})

                    list(pool.map(submit, range(THREADS)))
                code = 0
            finally:
                os._exit(code)
        children.append(pid)
    for _ in children:
        os.read(ready[0], 1)
    os.write(go[1], b"." * PROCESSES)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * PROCESSES

    written = [
        row[0] for row in database.all("select run_id from holdfast_events where kind = 'OPERATOR_ACTION' order by id")
    ]
    assert len(written) == PROCESSES * THREADS * EACH
    assert written == sorted(written)
    times = [row[0] for row in database.all("select created_at from holdfast_runs order by id")]
    assert times == sorted(times)


@pytest.mark.contract("P9")
@pytest.mark.parametrize("behind", [timedelta(0), timedelta(milliseconds=3), timedelta(hours=1)])
def test_a_process_with_a_slow_clock_still_assigns_later_ids(url: str, clock: FakeClock, behind: timedelta) -> None:
    slow = FakeClock(clock.now() - behind)
    with Holdfast(url, clock=clock, ids=Ids(1)) as one, Holdfast(url, clock=slow, ids=Ids(2)) as other:
        jobs = [job_of(one), job_of(other)]
        runs = [jobs[number % 2].submit().snapshot for number in range(20)]
        runs += [run.snapshot for run in jobs[1].submit_many([{}] * 3)]
        runs += [one.again(runs[0].id).snapshot, other.again(runs[0].id).snapshot]
    assert [run.id for run in runs] == sorted(run.id for run in runs)
    assert [run.created_at for run in runs] == sorted(run.created_at for run in runs)


@pytest.mark.contract("P9")
def test_a_run_submitted_with_a_wrong_clock_does_not_disturb_later_ids(url: str, clock: FakeClock) -> None:
    wrong = FakeClock(clock.now() + timedelta(days=400))
    with Holdfast(url, clock=wrong, ids=Ids(1)) as one, Holdfast(url, clock=clock, ids=Ids(2)) as other:
        job_of(one).submit()
        job = job_of(other)
        first, second = job.submit().snapshot, job.submit().snapshot
        assert first.created_at == second.created_at == clock.now()
        assert first.id < second.id


@pytest.mark.contract("P9")
def test_runs_start_in_the_order_of_their_ids(url: str, clock: FakeClock) -> None:
    behind = FakeClock(clock.now() - timedelta(seconds=5))
    with Holdfast(url, clock=clock) as one, Holdfast(url, clock=behind) as other:
        jobs = [job_of(one), job_of(other)]
        submitted = [jobs[number % 2].submit().id for number in range(10)]
        assert [claim.lease.run_id for claim in Manual(one).worker().claim(limit=10)] == submitted


@pytest.mark.contract("P9", "S2")
def test_a_run_of_a_callers_transaction_has_a_later_id_than_the_runs_it_can_see(
    url: str, clock: FakeClock, database: Database
) -> None:
    behind = FakeClock(clock.now() - timedelta(seconds=5))
    with Holdfast(url, clock=clock) as one, Holdfast(url, clock=behind) as other:
        first = job_of(one).submit()
        other.start()
        connection = database.connect()
        database.begin(connection)
        second = job_of(other).using(connection=connection).submit()
        connection.execute("commit")
        connection.close()
    assert first.id < second.id


@pytest.fixture(params=["before", "after"])
def cut_off(request: pytest.FixtureRequest, hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[None]]:
    """Break the connection at the next commit, before or after the database commits; the caller can't tell which."""
    done: list[None] = []

    def arrange() -> list[None]:
        commit = hf.store.dialect.commit

        def cut(connection: Any) -> None:
            if done:
                return commit(connection)
            if request.param == "after":
                commit(connection)
            done.append(None)
            raise StoreUnavailable("the connection broke")

        monkeypatch.setattr(hf.store.dialect, "commit", cut)
        return done

    return arrange


@pytest.mark.contract("S3", "P9")
@pytest.mark.parametrize("many", [False, True])
def test_a_submission_whose_reply_was_lost_keeps_its_id_and_its_time(
    hf: Holdfast, clock: FakeClock, database: Database, cut_off: Callable[[], list[None]], many: bool
) -> None:
    work = job_of(hf)
    hf.start()
    begun, made = clock.now(), []
    new = hf.ids.new

    def watched(*given: Any, **more: Any) -> str:
        clock.advance(1)  # a later transaction would read a later time
        made.append(new(*given, **more))
        return made[-1]

    hf.ids.new = watched  # type: ignore[method-assign]
    cut = cut_off()
    ids = [run.id for run in work.submit_many([{}, {}])] if many else [work.submit().id]
    assert cut
    assert ids == made
    assert database.count("runs") == len(ids)
    assert {hf.snapshot(one).created_at for one in ids} == {begun}


@pytest.mark.contract("S3")
def test_a_repeated_transaction_assigns_new_ids(
    hf: Holdfast, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was written, and other runs may have been committed meanwhile, so the repetition needs later ids."""
    from holdfast.store.dialects.base import Conflict

    work = job_of(hf)
    undone: list[None] = []
    hf.start()
    commit = hf.store.dialect.commit

    def refuse(connection: Any) -> None:
        if not undone:
            undone.append(None)
            raise Conflict("a deadlock")
        commit(connection)

    made: list[str] = []
    new = hf.ids.new
    hf.ids.new = lambda *given, **more: made.append(new(*given, **more)) or made[-1]  # type: ignore
    monkeypatch.setattr(hf.store.dialect, "commit", refuse)
    run = work.submit()
    assert (len(made), run.id, database.count("runs")) == (2, made[1], 1)
