"""What names no build, fits none or is refused itself leaves no build behind."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.building import App

from holdfast import BuildNotFound, Holdfast, InvalidArguments, InvalidPolicy, QueueFull
from holdfast.testing.manual import Manual

if TYPE_CHECKING:
    from tests.conftest import Database


@pytest.mark.contract("Q8", "S4")
def test_a_refused_submission_makes_no_build(hf: Holdfast, app: App, database: Database) -> None:
    hf.start()
    before = database.counts() | {"builds": database.count("builds")}
    with pytest.raises(Exception, match="there is no run nowhere"):
        app.process.using(after=["nowhere", app.of()]).submit("doc")
    assert database.counts() | {"builds": database.count("builds")} == before


@pytest.mark.contract("S3", "Q4")
def test_an_idempotent_repeat_asks_for_nothing_anew(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    first = app.ask(idempotency_key="k")
    manual.run_all()
    assert first.refresh().state == "failed"
    assert app.ask(idempotency_key="k").id == first.id
    assert hf.builds.get(app.of()).state == "failed", "nothing new was submitted, so nothing is built"


@pytest.mark.contract("S4")
@pytest.mark.parametrize(
    "wrong",
    [
        lambda app: app.environment.of(configuration_id="c1", fingerprint=""),
        lambda app: app.environment.of(configuration_id="c1", fingerprint="x" * 129),
        lambda app: app.environment.of(configuration_id="c1", fingerprint="two words"),
        lambda app: app.environment.of(configuration_id="c1", fingerprint="ü"),
        lambda app: app.environment.of(configuration_id="c1"),
        lambda app: app.environment.of(configuration_id="c1", fingerprint="f", more=1),
        lambda app: app.environment.submit(configuration_id=1, fingerprint="f"),
    ],
)
def test_arguments_that_name_no_build_are_refused(app: App, database: Database, wrong: Callable[[App], Any]) -> None:
    app.hf.start()
    before = database.counts()
    with pytest.raises(InvalidArguments):
        wrong(app)
    assert database.counts() == before
    assert app.hf.builds.list() == []


@pytest.mark.contract("S4")
def test_options_that_make_no_sense_for_a_build_are_refused(hf: Holdfast, app: App) -> None:
    for options in ({"delay": 5}, {"after": [app.of()]}, {"idempotency_key": "k"}, {"key": "{configuration_id}"}):
        with pytest.raises(InvalidPolicy, match="does not fit a build"):
            app.environment.using(**options).submit(configuration_id="c1", fingerprint="f1")
    with pytest.raises(InvalidPolicy, match="not created in your transaction"):
        app.environment.using(connection=object()).submit(configuration_id="c1", fingerprint="f1")
    with pytest.raises(InvalidPolicy, match="fingerprint: str"):
        hf.build(name="without")(lambda name: None)
    with pytest.raises(InvalidPolicy, match="scope='nobody' names no parameter"):
        hf.build(name="nobody", scope="nobody")(lambda fingerprint: None)
    with pytest.raises(InvalidPolicy, match="parentheses"):
        hf.build(lambda fingerprint: None)  # type: ignore[arg-type]
    with pytest.raises(InvalidPolicy, match="unknown option kind"):
        hf.build(kind="x")
    with pytest.raises(InvalidPolicy, match="nor a build"):
        app.process.using(after=[app.environment])
    with pytest.raises(InvalidPolicy, match="a build is queued"):
        hf.builds.list(state="running")
    with pytest.raises(InvalidPolicy, match="without NUL"):
        hf.builds.invalidate(app.of(), because="\x00")


@pytest.mark.contract("S4")
def test_a_build_that_no_one_asked_for_is_not_found(hf: Holdfast, app: App) -> None:
    plain = app.other.submit()
    for verb, which in itertools.product(
        (hf.builds.get, hf.builds.invalidate, hf.builds.rebuild), (app.of(), plain.id)
    ):
        with pytest.raises(BuildNotFound):
            verb(which)


@pytest.mark.contract("Q8")
def test_a_full_queue_makes_neither_run_nor_build_and_builds_take_no_seat(
    hf: Holdfast, manual: Manual, app: App, database: Database
) -> None:
    hf.queues.limit("default", max_queued=1)
    hf.queues.limit("*", max_queued=1)
    hf.queues.limit("builds", max_queued=1)
    first = app.ask(fingerprint="f1")
    app.environment.submit(configuration_id="c1", fingerprint="f2")
    assert database.count("builds") == 2, "a build is never refused"
    with pytest.raises(QueueFull):
        app.ask(fingerprint="f3")
    with pytest.raises(QueueFull):
        app.process.using(after=[app.of(fingerprint="f3")]).submit_many([{"document_id": "a"}])
    assert (database.count("builds"), len(hf.list_runs(job="process"))) == (2, 1)
    manual.run_all()
    assert first.refresh().state == "succeeded"
    assert database.count("seats") == 0
    assert app.ask(fingerprint="f3").snapshot.place == "waits"
    assert hf.verify() == []
