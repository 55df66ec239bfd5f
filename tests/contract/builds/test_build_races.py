"""Builds and concurrent transactions: a refused, repeated or late submission leaves no build behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.contract.helpers.builds import App
from tests.listing import runs_of

from holdfast import Holdfast, IdempotencyConflict
from holdfast.orchestrator import build_requests
from holdfast.runs.submission import Submission
from holdfast.runs.submit import submit_runs
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def app(hf: Holdfast) -> App:
    hf.start()
    return App(hf)


def submission(app: App, document_id: str, **options: Any) -> Submission:
    now = app.hf.clock.now()
    return app.process.submission(
        app.hf.ids.new(now), app.process.using(**options).options, (document_id,), {}, now=now
    )


def in_a_thread(function: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    raised: list[BaseException] = []

    def go() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=go)
    thread.start()
    return thread, raised


@pytest.mark.contract("S4", "Q4")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
@pytest.mark.parametrize("document_id", ["a", "b"], ids=["the same arguments", "other arguments"])
def test_a_submission_that_loses_its_idempotency_key_to_an_open_transaction_leaves_no_build(
    url: str, app: App, database: Database, document_id: str
) -> None:
    with psycopg.connect(url) as connection:
        winner = app.process.using(connection=connection, idempotency_key="k").submit("a")
        loser, raised = in_a_thread(lambda: app.submit(document_id, idempotency_key="k"))
        loser.join(timeout=0.5)
        assert loser.is_alive(), "it must wait for the transaction that holds the key"
        connection.commit()
    loser.join(timeout=60)
    assert [type(error) for error in raised] == ([] if document_id == "a" else [IdempotencyConflict])
    assert [run.id for run in runs_of(app.hf)] == [winner.id]
    assert database.count("builds") == 0


@pytest.mark.contract("S4", "Q4")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_submission_that_gets_a_rolled_back_idempotency_key_has_its_build(
    url: str, app: App, database: Database
) -> None:
    with psycopg.connect(url) as connection:
        app.process.using(connection=connection, idempotency_key="k").submit("a")
        other, raised = in_a_thread(lambda: app.submit("b", idempotency_key="k"))
        other.join(timeout=0.5)
        connection.rollback()
    other.join(timeout=60)
    assert raised == []
    assert (database.count("runs"), database.count("builds"), database.count("dependencies")) == (2, 1, 1)
    assert app.hf.verify() == []


@pytest.mark.contract("S4", "Q4")
@pytest.mark.parametrize("backwards", [False, True])
def test_the_same_idempotency_key_twice_in_one_commit_creates_one_build(
    hf: Holdfast, app: App, database: Database, backwards: bool
) -> None:
    both = [
        submission(app, name, depends_on=[app.request(fingerprint=name)], idempotency_key="k")
        for name in ("first", "second")
    ]
    both = both[::-1] if backwards else both
    answers = dict(zip((one.run_id for one in both), hf.do(lambda tx: submit_runs(tx, both, first=True)), strict=True))
    [run_id] = [answer for answer in answers.values() if isinstance(answer, str)]
    assert isinstance(next(answer for answer in answers.values() if answer != run_id), IdempotencyConflict)
    [build] = hf.builds.list()
    assert hf.snapshot(run_id).depends_on == (build.run_id,)
    assert (database.count("builds"), database.count("runs")) == (1, 2)
    assert hf.verify() == []


@pytest.mark.contract("S3", "Q4")
def test_a_failed_build_whose_reply_was_lost_is_not_built_twice(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    now, arguments = hf.clock.now(), {"configuration_id": "c1", "fingerprint": "f1"}
    asked = app.environment.submission(hf.ids.new(now), app.environment.options, (), arguments, now=now)
    [first] = hf.do(lambda tx: submit_runs(tx, [asked], first=True))
    manual.run_all()
    assert hf.do(lambda tx: submit_runs(tx, [asked])) == [first]
    manual.run_all()
    assert len(app.made) == 1


@pytest.mark.contract("S2", "Q4")
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_two_orchestrators_that_settle_build_requests_of_a_run_miss_none(
    url: str, hf: Holdfast, manual: Manual, app: App
) -> None:
    with psycopg.connect(url) as connection:
        run = app.process.using(connection=connection, depends_on=[app.request("c1"), app.request("c2")]).submit("doc")
        connection.commit()
    with hf.store.transaction() as tx:
        assert build_requests.resolve(tx, limit=1) == 1
        other, raised = in_a_thread(lambda: hf.do(lambda tx: build_requests.resolve(tx, limit=10)))
        other.join(timeout=0.5)
        assert other.is_alive(), "it must wait for the first transaction"
    other.join(timeout=60)
    assert raised == []
    assert run.refresh().snapshot.depends_on == tuple(hf.builds.get(app.request(one)).run_id for one in ("c1", "c2"))
    manual.run_all()
    assert str(run.result(timeout=1)).startswith("doc in /environments/c1/")
    assert hf.verify() == []
