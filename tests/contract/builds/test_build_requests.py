"""Build requests in a caller's transaction: the orchestrator finds or creates the builds after the commit."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.listing import runs_of

from holdfast import BuildRequest, Context, Holdfast
from holdfast.orchestrator import build_requests, promote
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

SECOND = timedelta(seconds=1)
Caller = Callable[[], contextlib.AbstractContextManager[Any]]


@pytest.fixture
def app(hf: Holdfast) -> Any:
    class App:
        made: list[str] = []  # noqa: RUF012
        fails = False

        @staticmethod
        @hf.build(name="environment")
        def environment(configuration_id: str, fingerprint: str) -> str:
            App.made.append(configuration_id)
            if App.fails:
                raise OSError("no room")
            return f"/{configuration_id}"

        @staticmethod
        @hf.job(name="process", key="document_id")
        def process(ctx: Context, document_id: str) -> list[Any]:
            return list(ctx.dependencies)

    hf.start()
    return App


@pytest.fixture
def caller(database: Database) -> Caller:
    """A connection with an open transaction, which is rolled back unless the test commits it."""

    @contextlib.contextmanager
    def begin() -> Iterator[Any]:
        with contextlib.closing(database.connect()) as connection:
            database.begin(connection)
            yield connection
            with contextlib.suppress(*database.errors):
                connection.execute("rollback")

    return begin


def request_for(app: Any, configuration_id: str = "c1") -> BuildRequest:
    request: BuildRequest = app.environment.request(configuration_id=configuration_id, fingerprint="f1")
    return request


@pytest.mark.contract("S2", "Q4")
def test_a_build_requested_in_a_transaction_starts_after_the_commit(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller, database: Database
) -> None:
    first = app.environment.submit(configuration_id="c2", fingerprint="f1")
    with caller() as connection:
        run = app.process.using(
            connection=connection, depends_on=[request_for(app), first, request_for(app, "c2")]
        ).submit("doc")
        connection.execute("commit")
    assert (database.count("builds"), database.count("build_requests")) == (1, 2), (
        "the caller's transaction created no build"
    )
    assert "environment configuration_id:c1 f1; no worker is alive" in " ".join(run.why().reasons)
    assert hf.verify() == []

    manual.orchestrate()
    assert (database.count("builds"), database.count("build_requests"), database.count("dependencies")) == (2, 0, 2)
    assert run.refresh().snapshot.depends_on == (hf.builds.get(request_for(app)).run_id, first.id, first.id)
    assert hf.verify() == []
    manual.run_all()
    assert run.result(timeout=1) == ["/c1", "/c2", "/c2"]
    assert sorted(app.made) == ["c1", "c2"]


@pytest.mark.contract("S2")
def test_a_rolled_back_transaction_leaves_no_build_request(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller, database: Database
) -> None:
    with caller() as connection:
        app.process.using(connection=connection, depends_on=[request_for(app)]).submit("doc")
        connection.execute("rollback")
    manual.run_all()
    assert [database.count(table) for table in ("runs", "waits", "build_requests", "builds")] == [0, 0, 0, 0]
    assert app.made == []


@pytest.mark.contract("Q4", "S3")
def test_a_request_for_a_ready_build_is_settled_at_the_first_check(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller
) -> None:
    app.environment.submit(configuration_id="c1", fingerprint="f1")
    manual.run_all()
    with caller() as connection:
        runs = app.process.using(connection=connection, depends_on=[request_for(app)]).submit_many(
            [{"document_id": "a"}, {"document_id": "b"}]
        )
        connection.execute("commit")
    manual.orchestrate()
    assert [run.refresh().snapshot.place for run in runs] == ["ready", "ready"]
    manual.run_all()
    assert [run.result(timeout=1) for run in runs] == [["/c1"], ["/c1"]]
    assert app.made == ["c1"]
    assert hf.verify() == []


@pytest.mark.contract("Q11")
def test_a_request_for_a_failed_build_builds_it_once_more(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller
) -> None:
    app.fails = True
    app.environment.submit(configuration_id="c1", fingerprint="f1")
    manual.run_all()
    with caller() as connection:
        run = app.process.using(connection=connection, depends_on=[request_for(app)]).submit("doc")
        connection.execute("commit")
    manual.run_all()
    assert run.refresh().snapshot.failure_type == "BUILD_FAILED"
    assert len(app.made) == 2
    assert hf.verify() == []


def request_in_transaction(app: Any, caller: Caller, document: str) -> Any:
    """Submit a run that requests the build in a caller's transaction, and commit."""
    with caller() as connection:
        run = app.process.using(connection=connection, depends_on=[request_for(app)]).submit(document)
        connection.execute("commit")
    return run


@pytest.mark.contract("Q11", "Q15")
def test_a_build_cancelled_after_its_request_is_not_built_and_the_run_fails(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller, clock: FakeClock
) -> None:
    """The request is settled after the cancel but was made before it, so the cancel applies to it."""
    before = request_in_transaction(app, caller, "before")
    clock.advance(SECOND)
    build = app.environment.submit(configuration_id="c1", fingerprint="f1")
    assert build.cancel() == "cancelled"
    manual.run_all()
    assert app.made == []
    assert hf.builds.get(request_for(app)).run_id == build.id
    snapshot = before.refresh().snapshot
    assert (snapshot.state, snapshot.failure_type) == ("failed", "BUILD_FAILED")
    assert snapshot.error.startswith("build failed: it was cancelled")
    assert hf.verify() == []

    clock.advance(SECOND)
    later = request_in_transaction(app, caller, "later")
    manual.run_all()
    assert later.result(timeout=1) == ["/c1"]
    assert app.made == ["c1"]
    assert before.refresh().snapshot.state == "failed"


@pytest.mark.contract("Q11", "Q15")
@pytest.mark.parametrize("together", [True, False])
def test_of_two_requests_only_the_one_made_after_the_cancel_starts_the_build(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller, clock: FakeClock, together: bool
) -> None:
    """The older request fails, even if a newer submission has already started the build again."""
    before = request_in_transaction(app, caller, "before")
    clock.advance(SECOND)
    app.environment.submit(configuration_id="c1", fingerprint="f1").cancel()
    clock.advance(SECOND)
    later = (
        request_in_transaction(app, caller, "later")
        if together
        else app.process.using(depends_on=[request_for(app)]).submit("later")
    )
    manual.run_all()
    assert later.result(timeout=1) == ["/c1"]
    assert app.made == ["c1"]
    assert before.refresh().snapshot.failure_type == "BUILD_FAILED"
    assert hf.verify() == []


@pytest.mark.contract("Q11", "Q15")
def test_an_old_request_does_not_replace_a_build_that_failed_after_the_cancel(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller, clock: FakeClock
) -> None:
    before = request_in_transaction(app, caller, "before")
    clock.advance(SECOND)
    app.environment.submit(configuration_id="c1", fingerprint="f1").cancel()
    app.fails = True
    again = app.environment.submit(configuration_id="c1", fingerprint="f1")
    worker = manual.worker(queues=["builds"])
    hf.do(lambda tx: promote.check_waiting(tx, limit=10))  # everything except the build requests
    hf.do(lambda tx: promote.assign_key_locks(tx, limit=10))
    [claim] = worker.claim()
    worker.work(claim)
    assert again.refresh().snapshot.state == "failed"
    manual.run_all()
    assert app.made == ["c1"]
    assert before.refresh().snapshot.error.startswith("build failed: it was cancelled")
    assert hf.builds.get(request_for(app)).run_id == again.id
    assert hf.verify() == []


@pytest.mark.contract("Q11", "S2")
@pytest.mark.parametrize("joined", [True, False])
def test_a_build_requested_twice_must_succeed_if_either_request_requires_it(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller, joined: bool
) -> None:
    build = app.environment.submit(configuration_id="c1", fingerprint="f1")
    asking = app.process.using(depends_on={build: False, request_for(app): True})
    if joined:
        with caller() as connection:
            run = asking.using(connection=connection).submit("doc")
            connection.execute("commit")
    else:
        run = asking.submit("doc")
    manual.orchestrate()
    build.cancel()
    manual.run_all()
    assert run.refresh().snapshot.failure_type == "BUILD_FAILED"
    assert hf.verify() == []


@pytest.mark.contract("Q15", "S3")
def test_a_cancelled_or_failed_run_requests_no_build(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller, database: Database
) -> None:
    needed = app.process.submit("needed")
    with caller() as connection:
        cancelled = app.process.using(connection=connection, depends_on=[request_for(app)]).submit("doc")
        fails = app.process.using(connection=connection, depends_on=[needed, request_for(app, "c2")]).submit("doc")
        connection.execute("commit")
    assert cancelled.cancel() == "cancelled"
    needed.cancel()
    hf.do(lambda tx: promote.dependents(tx, [needed.id], limit=10))
    assert fails.refresh().snapshot.failure_type == "DEPENDENCY_FAILED"
    assert (database.count("build_requests"), database.count("dependencies")) == (0, 0)
    manual.run_all()
    assert app.made == []
    assert hf.verify() == []


@pytest.mark.contract("S3")
def test_build_requests_are_settled_in_bounded_batches_and_none_is_missed(
    hf: Holdfast, manual: Manual, app: Any, caller: Caller, database: Database
) -> None:
    with caller() as connection:
        runs = [
            app.process.using(
                connection=connection, depends_on=[request_for(app, f"c{n}"), request_for(app, "shared")]
            ).submit(f"doc-{n}")
            for n in range(5)
        ]
        connection.execute("commit")
    assert hf.do(lambda tx: build_requests.resolve(tx, limit=3)) == 3
    hf.do(lambda tx: promote.check_waiting(tx, limit=100))
    hf.do(lambda tx: promote.mark_checked(tx, limit=100))
    assert hf.verify() == [], "runs with open build requests must still be marked for a check"
    assert database.count("build_requests") == 7
    manual.run_all(limit=50)
    assert [run.result(timeout=1) for run in runs] == [[f"/c{n}", "/shared"] for n in range(5)]
    assert len(app.made) == 6
    assert hf.verify() == []


@pytest.mark.contract("S3", "Q4")
def test_a_worker_executes_a_build_that_a_transaction_requested(live: Holdfast, database: Database) -> None:
    @live.build(name="environment")
    def environment(fingerprint: str) -> str:
        return "built"

    @live.job(name="process")
    def process(ctx: Context) -> Any:
        return ctx.dependencies[0]

    live.start()
    with live.worker():
        with contextlib.closing(database.connect()) as connection:
            database.begin(connection)
            run = process.using(connection=connection, depends_on=[environment.request("f")]).submit()
            connection.execute("commit")
        assert run.result(timeout=60) == "built"


@pytest.mark.contract("S3", "Q15")
def test_cancelling_while_the_orchestrator_settles_leaves_no_dependency_behind(url: str, database: Database) -> None:
    with Holdfast(url) as hf:

        @hf.build(name="environment")
        def environment(fingerprint: str) -> None: ...

        @hf.job(name="process")
        def process() -> None: ...

        hf.start()
        for turn in range(15):
            with contextlib.closing(database.connect()) as connection:
                database.begin(connection)
                joined = process.using(connection=connection, depends_on=[environment.request(f"f{turn}")])
                runs = joined.submit_many([{}] * 4)
                connection.execute("commit")
            barrier = threading.Barrier(4)

            def settle(barrier: threading.Barrier = barrier) -> None:
                barrier.wait()
                hf.do(lambda tx: build_requests.resolve(tx, limit=100))

            def cancel(some: list[Any], barrier: threading.Barrier = barrier) -> None:
                barrier.wait()
                for run in some:
                    assert run.cancel() == "cancelled"

            with ThreadPoolExecutor(4) as pool:
                done = [pool.submit(settle), pool.submit(settle), pool.submit(cancel, runs[:1])]
                done.append(pool.submit(cancel, runs[1:2]))
                for one in done:
                    one.result(timeout=60)
            assert hf.verify() == []
        assert database.count("build_requests") == 0
        Manual(hf).run_all()
        assert [run.state for run in runs_of(hf, job="process")].count("succeeded") == 30
        assert len(hf.builds.list()) == 15
        assert hf.verify() == []
