"""Builds: made once for each scope and fingerprint, shared by whoever asks, replaced by one when they are no good."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from holdfast import (
    BuildNotFound,
    Context,
    Holdfast,
    InvalidArguments,
    InvalidPolicy,
    QueueFull,
    RunFailed,
    RunNotFound,
    Wish,
)
from holdfast.orchestrator import promote
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.conftest import Database


class App:
    """A build whose makings are counted and can be told to fail, and a job that uses it."""

    def __init__(self, hf: Holdfast) -> None:
        self.hf = hf
        self.made: list[tuple[str, str]] = []
        self.fails = False
        app = self

        @hf.build(name="environment")
        def environment(ctx: Context, configuration_id: str, fingerprint: str) -> str:
            app.made.append((configuration_id, fingerprint))
            if app.fails:
                raise OSError("the index can't be reached")
            return f"/environments/{configuration_id}/{len(app.made)}"

        @hf.job(name="process")
        def process(ctx: Context, document_id: str) -> str:
            return f"{document_id} in {ctx.needed[0]}"

        @hf.job(name="other")
        def other() -> None: ...

        self.environment, self.process, self.other = environment, process, other

    def of(self, configuration_id: str = "c1", fingerprint: str = "f1") -> Wish:
        return self.environment.of(configuration_id=configuration_id, fingerprint=fingerprint)

    def ask(self, document_id: str = "doc", *, fingerprint: str = "f1", **options: Any) -> Any:
        return self.process.using(after=[self.of(fingerprint=fingerprint)], **options).submit(document_id)


@pytest.fixture
def app(hf: Holdfast) -> App:
    return App(hf)


@pytest.mark.contract("Q3", "Q4", "Q11")
def test_many_runs_share_one_build_and_wait_for_it_without_a_worker(
    hf: Holdfast, manual: Manual, app: App, database: Database
) -> None:
    runs = [app.ask(f"doc-{number}") for number in range(5)]
    assert manual.worker().claim(limit=9) == [], "they wait; no worker of theirs is held"
    assert database.count("builds") == 1
    assert hf.builds.get(app.of()).waiting == 5

    manual.run_all()

    assert [run.result(timeout=1) for run in runs] == [f"doc-{n} in /environments/c1/1" for n in range(5)]
    assert app.made == [("c1", "f1")]
    [build] = {run.refresh().snapshot.needed for run in runs}
    assert build == (hf.builds.get(app.of()).run_id,)
    assert hf.verify() == []


@pytest.mark.contract("Q4")
def test_a_build_that_is_ready_costs_no_wait(hf: Holdfast, manual: Manual, app: App) -> None:
    first = app.environment.submit(configuration_id="c1", fingerprint="f1")
    manual.run_all()

    late = app.ask()
    assert late.snapshot.place == "ready"
    assert app.environment.submit(configuration_id="c1", fingerprint="f1").id == first.id
    manual.run_all()
    assert late.result(timeout=1) == "doc in /environments/c1/1"
    assert len(app.made) == 1


@pytest.mark.contract("Q3", "Q6")
def test_a_run_never_joins_a_build_of_another_fingerprint_or_scope(hf: Holdfast, manual: Manual, app: App) -> None:
    one, two = app.ask(fingerprint="f1"), app.ask(fingerprint="f2")
    other = app.process.using(after=[app.of("c2", "f1")]).submit("doc")
    builds = hf.builds.list()
    assert {(build.scope, build.fingerprint) for build in builds} == {
        ("configuration_id:c1", "f1"),
        ("configuration_id:c1", "f2"),
        ("configuration_id:c2", "f1"),
    }
    assert len(manual.worker(queues=["builds"]).claim(limit=9)) == 3, "builds of different fingerprints run together"
    assert len({run.snapshot.needed for run in (one, two, other)}) == 3


@pytest.mark.contract("Q2", "Q10")
def test_a_run_that_waits_for_its_build_blocks_no_younger_one(hf: Holdfast, manual: Manual, app: App) -> None:
    waiting, younger = app.ask(), app.other.submit()
    [claim] = manual.worker().claim(limit=9)
    assert claim.lease.run_id == younger.id
    assert waiting.refresh().state == "queued", "no state of its own: its build explains why"
    reason = waiting.why().reasons[0]
    assert reason.startswith("it waits for build environment configuration_id:c1 f1 (run ")
    [building] = manual.worker("builder", queues=["builds"]).claim()
    reason = waiting.why().reasons[0]
    assert "which is building on builder since 2026-" in reason
    manual.worker("builder").finish(building)


@pytest.mark.contract("Q8")
def test_builds_have_a_queue_of_their_own(hf: Holdfast, app: App) -> None:
    app.ask()
    assert [run.queue for run in hf.list_runs(job="environment")] == ["builds"]
    assert [run.kind for run in hf.list_runs(job="environment")] == ["build"]


@pytest.mark.contract("Q11", "Q3")
@pytest.mark.parametrize("ending", ["failed", "cancelled", "timed_out"])
def test_a_build_that_ends_badly_fails_its_waiters_with_its_reason(
    hf: Holdfast, manual: Manual, clock: FakeClock, app: App, ending: str
) -> None:
    app.fails = True
    runs = [app.ask(f"doc-{number}") for number in range(3)]
    downstream = app.other.using(after=[runs[0]]).submit()
    build = hf.builds.get(app.of())
    match ending:
        case "failed":
            reason = "build failed: OSError: the index can't be reached"
        case "cancelled":
            hf.cancel(build.run_id, reason="no longer wanted")
            reason = "build failed: it was cancelled: no longer wanted"
        case "timed_out":
            manual.worker(queues=["builds"]).claim()
            clock.advance(700)
            reason = "build failed: it timed out: over its window"
    manual.run_all()

    for run in runs:
        assert (run.refresh().state, run.snapshot.failure_type) == ("failed", "BUILD_FAILED")
        assert run.snapshot.error.startswith(reason)
        assert run.snapshot.error.endswith(f"(environment, run {build.run_id})")
    assert downstream.refresh().snapshot.failure_type == "NEED_FAILED"
    assert hf.builds.get(app.of()).state == ("cancelled" if ending == "cancelled" else "failed")
    assert hf.verify() == []


@pytest.mark.contract("Q11")
def test_the_next_who_asks_for_a_failed_build_has_it_made_once_more(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    unlucky = app.ask("unlucky")
    manual.run_all()
    first = hf.builds.get(app.of()).run_id
    app.fails = False

    lucky = [app.ask("lucky"), app.ask("too")]
    second = hf.builds.get(app.of())
    assert (second.state, second.waiting) == ("queued", 2)
    assert hf.snapshot(second.run_id).again_of == first
    manual.run_all()

    assert [run.result(timeout=1) for run in lucky] == ["lucky in /environments/c1/2", "too in /environments/c1/2"]
    assert unlucky.refresh().state == "failed", "what has ended stays as it ended"
    assert [run.id for run in hf.builds.history(app.of())] == [second.run_id, first]
    assert hf.verify() == []


@pytest.mark.contract("Q14")
def test_a_build_whose_worker_is_lost_is_made_once_more_and_then_fails(
    hf: Holdfast, manual: Manual, clock: FakeClock, app: App
) -> None:
    waiting = app.ask()
    for _ in range(2):
        assert manual.worker(queues=["builds"]).claim() != []
        clock.advance(2 * hf.settings.lease)
        manual.orchestrate()
    build = hf.builds.get(app.of())
    assert (build.state, build.failure_type) == ("failed", "TAKEOVER_LIMIT")
    assert "build failed: 2 workers were lost with it" in waiting.refresh().snapshot.error


@pytest.mark.contract("Q5")
def test_a_build_is_made_in_one_place_at_a_time_even_when_it_is_made_anew(
    hf: Holdfast, manual: Manual, app: App
) -> None:
    app.ask("early")
    builder = manual.worker("builder", queues=["builds"])
    [old] = builder.claim()
    hf.builds.invalidate(app.of(), because="the index was wrong")
    late = app.ask("late")
    assert builder.claim() == [], "the outdated making has not ended"
    assert f"held by run {old.lease.run_id} on builder" in late.why().reasons[0]

    builder.finish(old)
    manual.orchestrate()
    [new] = builder.claim()
    assert (new.lease.run_id,) == late.refresh().snapshot.needed
    assert new.again_of == old.lease.run_id
    builder.work(new)
    manual.run_all()
    assert late.result(timeout=1) == "late in /environments/c1/1"
    assert hf.verify() == []


@pytest.mark.contract("Q11", "S3")
def test_invalid_is_not_reused_and_a_rebuild_starts_at_once(hf: Holdfast, manual: Manual, app: App) -> None:
    app.ask()
    manual.run_all()
    ready = hf.builds.get(app.of())
    assert ready.state == "ready"

    stale = hf.builds.invalidate(ready, because="a package was withdrawn")
    assert (stale.state, stale.because) == ("stale", "a package was withdrawn")
    assert hf.builds.invalidate(ready.run_id, because="again").because == "a package was withdrawn"
    again = app.ask("again")
    assert again.snapshot.place == "waits"
    manual.run_all()
    assert again.result(timeout=1) == "again in /environments/c1/2"

    rebuilt = hf.builds.rebuild(app.of())
    assert rebuilt.snapshot.again_of == hf.builds.history(app.of())[1].id
    by_run = hf.again(ready.run_id)
    assert by_run.snapshot.again_of == rebuilt.id, "running a build's run again is a rebuild of the build as it is now"
    manual.run_all()
    assert hf.builds.get(app.of()).result == '"/environments/c1/4"'
    assert [run.id for run in hf.builds.history(app.of())][-1] == ready.run_id
    assert hf.verify() == []


@pytest.mark.contract("Q5", "Q11")
def test_many_who_find_a_failed_build_replace_it_by_one(url: str, database: Database) -> None:
    with Holdfast(url) as hf:
        app = App(hf)
        manual = Manual(hf)
        app.fails = True
        app.ask()
        manual.run_all()
        app.fails = False
        barrier = threading.Barrier(8)

        def ask(number: int) -> Any:
            barrier.wait()
            return app.ask(f"doc-{number}")

        with ThreadPoolExecutor(8) as pool:
            runs = list(pool.map(ask, range(8)))
        manual.run_all()
        assert len({run.refresh().snapshot.needed for run in runs}) == 1
        assert {run.state for run in runs} == {"succeeded"}
        assert len(app.made) == 2
        assert (database.count("builds"), len(hf.list_runs(job="environment"))) == (1, 2)
        assert hf.verify() == []


@pytest.mark.contract("Q11", "S3")
def test_thousands_who_wait_for_one_build_fail_a_thousand_at_a_time(
    hf: Holdfast, manual: Manual, app: App, database: Database
) -> None:
    wish = app.of()
    app.process.using(after=[wish]).submit_many([{"document_id": str(number)} for number in range(3_500)])
    hf.cancel(hf.builds.get(wish).run_id)
    moved = [hf.do(lambda tx: promote.needs(tx, [hf.builds.get(wish).run_id], limit=1000)) for _ in range(5)]
    assert moved == [1000, 1000, 1000, 500, 0]
    assert database.all("select failure_type, count(*) from holdfast_outcomes group by failure_type order by 1") == [
        ("BUILD_FAILED", 3_500),
        ("CANCELLED", 1),
    ]
    assert (database.count("needs"), database.count("waits")) == (0, 0)


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


def test_wishes_stand_beside_runs_and_keep_their_order(hf: Holdfast, manual: Manual, app: App) -> None:
    run = app.environment.submit(configuration_id="c9", fingerprint="f9")
    mixed = app.process.using(after={app.of("c1"): True, run: True, app.of("c2"): False, app.of("c9", "f9"): True})
    submitted = mixed.submit("doc")
    manual.run_all()
    assert submitted.result(timeout=1).startswith("doc in /environments/c1/")
    needed = submitted.refresh().snapshot.needed
    assert needed == (hf.builds.get(app.of("c1")).run_id, run.id, hf.builds.get(app.of("c2")).run_id, run.id)
    assert hf.verify() == []


def test_a_build_may_end_badly_where_only_its_end_is_needed(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    tolerant = app.process.using(after={app.of(): False}).submit("doc")
    manual.run_all()
    assert tolerant.result(timeout=1) == "doc in None"


def test_called_as_a_function_a_build_is_only_that(app: App) -> None:
    assert app.environment("c1", "f1") == "/environments/c1/1"
    assert app.hf.builds.list() == []


def test_the_scope_comes_from_the_other_parameters_or_from_what_is_said(hf: Holdfast) -> None:
    @hf.build(name="several")
    def several(name: str, fingerprint: str, python: str = "3.11", options: dict[str, int] | None = None) -> None: ...

    @hf.build(name="none")
    def none(fingerprint: str) -> None: ...

    @hf.build(name="number")
    def number(n: int, fingerprint: str) -> None: ...

    @hf.build(name="named", scope="tenant")
    def named(tenant: str, note: str, fingerprint: str) -> None: ...

    @hf.build(name="template", scope="{tenant}/{project}")
    def template(tenant: str, project: str, fingerprint: str) -> None: ...

    @hf.build(name="function", scope=lambda tenant, **rest: tenant.lower())
    def function(tenant: str, note: str, fingerprint: str) -> None: ...

    assert several.of("a", "f").scope == '{"name":"a","options":null,"python":"3.11"}'
    assert (
        several.of("a", "f", options={"z": 1, "b": 2}).scope
        == several.of(python="3.11", options={"b": 2, "z": 1}, name="a", fingerprint="f").scope
    )
    assert none.of("f").scope == "{}"
    assert number.of(3, "f").scope == "n:3"
    assert named.of("t", "other", "f") == named.of("t", "note", "f")
    assert template.of("t", "p", "f").scope == "t/p"
    assert function.of("T", "", "f").scope == "t"
    long = several.of("x" * 1000, "f").scope
    assert long.startswith("sha256:")
    assert long != several.of("x" * 1001, "f").scope


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


def test_builds_are_listed_newest_first_and_by_what_is_asked(hf: Holdfast, manual: Manual, app: App) -> None:
    for fingerprint in ("f1", "f2", "f3"):
        app.environment.submit(configuration_id="c1", fingerprint=fingerprint)
    assert [build.fingerprint for build in hf.builds.list()] == ["f3", "f2", "f1"]
    page = hf.builds.list(limit=2)
    assert [build.fingerprint for build in hf.builds.list(before=page[-1].run_id)] == ["f1"]
    manual.run_all()
    hf.builds.invalidate(app.of(fingerprint="f2"))
    assert [build.fingerprint for build in hf.builds.list(job=app.environment, state="ready")] == ["f3", "f1"]
    assert [build.state for build in hf.builds.list(fingerprint="f2", scope="configuration_id:c1")] == ["stale"]
    assert hf.builds.list(job="other") == []


def test_a_build_whose_run_is_not_kept_any_more_is_made_anew(
    hf: Holdfast, manual: Manual, app: App, database: Database
) -> None:
    app.environment.submit(configuration_id="c1", fingerprint="f1")
    manual.run_all()
    database.run("delete from holdfast_runs")
    assert [finding.problem for finding in hf.verify() if "build" in finding.problem] == ["build_without_run"]
    assert hf.builds.get(app.of()).state == "stale"
    late = app.ask()
    manual.run_all()
    assert late.result(timeout=1) == "doc in /environments/c1/2"


def test_a_worker_that_is_not_told_serves_builds_too(live: Holdfast) -> None:
    app = App(live)
    run = app.ask()
    with live.worker() as worker:
        assert worker.queues == ["builds", "default"]
        assert run.result(timeout=20) == "doc in /environments/c1/1"
    with live.worker(queues=["default"]):
        stuck = app.ask(fingerprint="f2")
        with pytest.raises(Exception, match="still queued"):
            stuck.result(timeout=0.3)
        assert "serves queue builds" in stuck.why().reasons[0]
    live.cancel(stuck.snapshot.needed[0])
    with live.worker(), pytest.raises(RunFailed, match="build failed: it was cancelled"):
        stuck.result(timeout=20)


@pytest.mark.contract("S4")
def test_a_build_is_no_ones_child_but_a_child_may_wait_for_one(hf: Holdfast, manual: Manual, app: App) -> None:
    @hf.job(name="refused")
    def refused(ctx: Context) -> None:
        ctx.submit_child(app.environment, configuration_id="c1", fingerprint="f1")

    @hf.job(name="parent")
    def parent(ctx: Context) -> list[str]:
        child = ctx.submit_child(app.process.using(after=[app.of()]), document_id="doc")
        return ctx.gather(child)

    wrong, right = refused.submit(), parent.submit()
    manual.run_all()
    assert "is no one's child" in str(wrong.refresh().snapshot.error)
    assert right.result(timeout=1) == ["doc in /environments/c1/1"]


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


@pytest.mark.contract("S3", "Q4", "Q11")
def test_builds_asked_for_in_every_order_while_they_fail_and_go_stale_hold_no_one_up(url: str) -> None:
    """Eight threads ask for many builds at once, in orders of their own; others call builds stale and end them."""
    with Holdfast(url) as hf:
        app = App(hf)
        hf.start()
        wishes = [app.of(f"c{number}") for number in range(6)]

        def ask(number: int) -> list[Any]:
            runs: list[Any] = []
            for turn in range(6):
                start = (number * 5 + turn) % 6
                after = (wishes[start:] + wishes[:start])[:: -1 if number % 2 else 1]
                runs += app.process.using(after=after).submit_many([{"document_id": f"{number}-{turn}"}] * 3)
                if number % 4 == 0:
                    hf.builds.invalidate(wishes[start])
                elif number % 4 == 1:
                    hf.cancel(hf.builds.get(wishes[start]).run_id)
                elif number % 4 == 2:
                    hf.builds.rebuild(wishes[start])
            return runs

        with ThreadPoolExecutor(8) as pool:
            runs = [run for some in pool.map(ask, range(8)) for run in some]
        manual = Manual(hf)
        manual.run_all()
        assert {run.refresh().state for run in runs} <= {"succeeded", "failed"}
        assert {run.snapshot.failure_type for run in runs} <= {None, "BUILD_FAILED"}
        for run in runs:
            if run.state == "succeeded":
                assert [hf.snapshot(build).state for build in run.snapshot.needed] == ["succeeded"] * 6
        assert len(hf.builds.list()) == 6
        assert hf.verify() == []


@pytest.mark.contract("Q1", "S3")
@pytest.mark.parametrize("outdated", ["stale", "made anew"])
def test_retention_takes_nothing_from_a_run_that_was_given_a_build(
    hf: Holdfast, manual: Manual, clock: FakeClock, app: App, outdated: str
) -> None:
    old = app.environment.submit(configuration_id="c1", fingerprint="f1")
    manual.run_all()
    clock.advance(timedelta(days=40))
    run = app.ask()
    if outdated == "stale":
        hf.builds.invalidate(app.of())
    else:
        hf.builds.rebuild(app.of())
    assert hf.retain().runs == 0
    manual.run_all()
    assert run.result(timeout=1) == "doc in /environments/c1/1"
    clock.advance(timedelta(days=31))
    hf.retain()
    with pytest.raises(RunNotFound):
        old.refresh()
    assert hf.verify() == []


def test_retention_keeps_what_is_ready_and_lets_go_of_what_no_one_would_get(
    hf: Holdfast, manual: Manual, clock: FakeClock, app: App
) -> None:
    app.environment.submit(configuration_id="c1", fingerprint="ready")
    app.environment.submit(configuration_id="c1", fingerprint="stale")
    manual.run_all()
    app.fails = True
    app.environment.submit(configuration_id="c1", fingerprint="failed")
    manual.run_all()
    hf.builds.invalidate(app.of(fingerprint="stale"))
    clock.advance(365 * 86_400)
    assert hf.retain().runs == 2
    assert [(build.fingerprint, build.state) for build in hf.builds.list()] == [("ready", "ready")]
    app.fails = False
    run = app.ask(fingerprint="failed")
    manual.run_all()
    assert run.refresh().state == "succeeded"
    assert hf.verify() == []
