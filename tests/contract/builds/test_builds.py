"""Builds: one for each scope and fingerprint, shared by all runs that depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.contract.helpers.builds import App
from tests.listing import runs_of

from holdfast import Context, Holdfast, QueueFull, RunFailed
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.mark.contract("Q3", "Q4", "Q11")
def test_many_runs_share_one_build_and_wait_for_it_without_a_worker(
    hf: Holdfast, manual: Manual, app: App, database: Database
) -> None:
    runs = [app.submit(f"doc-{number}") for number in range(5)]
    assert manual.worker().claim(limit=9) == [], "waiting runs must not be claimable"
    assert database.count("builds") == 1
    assert hf.builds.get(app.request()).waiting == 5

    manual.run_all()

    assert [run.result(timeout=1) for run in runs] == [f"doc-{n} in /environments/c1/1" for n in range(5)]
    assert app.made == [("c1", "f1")]
    [build] = {run.refresh().snapshot.depends_on for run in runs}
    assert build == (hf.builds.get(app.request()).run_id,)
    assert hf.verify() == []


@pytest.mark.contract("Q4")
def test_a_run_does_not_wait_for_a_ready_build(hf: Holdfast, manual: Manual, app: App) -> None:
    first = app.environment.submit(configuration_id="c1", fingerprint="f1")
    manual.run_all()

    late = app.submit()
    assert late.snapshot.place == "ready"
    assert app.environment.submit(configuration_id="c1", fingerprint="f1").id == first.id
    manual.run_all()
    assert late.result(timeout=1) == "doc in /environments/c1/1"
    assert len(app.made) == 1


@pytest.mark.contract("Q3", "Q6")
def test_a_run_never_shares_a_build_of_another_fingerprint_or_scope(hf: Holdfast, manual: Manual, app: App) -> None:
    one, two = app.submit(fingerprint="f1"), app.submit(fingerprint="f2")
    other = app.process.using(depends_on=[app.request("c2", "f1")]).submit("doc")
    builds = hf.builds.list()
    assert {(build.scope, build.fingerprint) for build in builds} == {
        ("configuration_id:c1", "f1"),
        ("configuration_id:c1", "f2"),
        ("configuration_id:c2", "f1"),
    }
    assert len(manual.worker(queues=["builds"]).claim(limit=9)) == 3, "builds of different fingerprints run together"
    assert len({run.snapshot.depends_on for run in (one, two, other)}) == 3


@pytest.mark.contract("Q2", "Q10")
def test_a_run_that_waits_for_its_build_blocks_no_younger_one(hf: Holdfast, manual: Manual, app: App) -> None:
    waiting, younger = app.submit(), app.other.submit()
    [claim] = manual.worker().claim(limit=9)
    assert claim.lease.run_id == younger.id
    assert waiting.refresh().state == "queued", "waiting for a build must not be a state of its own"
    reason = waiting.why().reasons[0]
    assert reason.startswith("it waits for build environment configuration_id:c1 f1 (run ")
    [building] = manual.worker("builder", queues=["builds"]).claim()
    reason = waiting.why().reasons[0]
    assert "which has been building on builder since 2026-" in reason
    manual.worker("builder").finish(building)


@pytest.mark.contract("Q8")
def test_builds_have_a_queue_of_their_own(hf: Holdfast, app: App) -> None:
    app.submit()
    assert [run.queue for run in runs_of(hf, job="environment")] == ["builds"]
    assert [run.kind for run in runs_of(hf, job="environment")] == ["build"]


def test_build_requests_and_runs_keep_their_order_as_dependencies(hf: Holdfast, manual: Manual, app: App) -> None:
    run = app.environment.submit(configuration_id="c9", fingerprint="f9")
    mixed = app.process.using(
        depends_on={app.request("c1"): True, run: True, app.request("c2"): False, app.request("c9", "f9"): True}
    )
    submitted = mixed.submit("doc")
    manual.run_all()
    assert submitted.result(timeout=1).startswith("doc in /environments/c1/")
    needed = submitted.refresh().snapshot.depends_on
    assert needed == (hf.builds.get(app.request("c1")).run_id, run.id, hf.builds.get(app.request("c2")).run_id, run.id)
    assert hf.verify() == []


def test_a_build_may_fail_if_its_success_is_not_required(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    tolerant = app.process.using(depends_on={app.request(): False}).submit("doc")
    manual.run_all()
    assert tolerant.result(timeout=1) == "doc in None"


def test_calling_a_build_only_runs_its_function(app: App) -> None:
    assert app.environment("c1", "f1") == "/environments/c1/1"
    assert app.hf.builds.list() == []


def test_the_scope_comes_from_the_other_parameters_or_from_an_option(hf: Holdfast) -> None:
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

    assert several.request("a", "f").scope == '{"name":"a","options":null,"python":"3.11"}'
    assert (
        several.request("a", "f", options={"z": 1, "b": 2}).scope
        == several.request(python="3.11", options={"b": 2, "z": 1}, name="a", fingerprint="f").scope
    )
    assert none.request("f").scope == "{}"
    assert number.request(3, "f").scope == "n:3"
    assert named.request("t", "other", "f") == named.request("t", "note", "f")
    assert template.request("t", "p", "f").scope == "t/p"
    assert function.request("T", "", "f").scope == "t"
    long = several.request("x" * 1000, "f").scope
    assert long.startswith("sha256:")
    assert long != several.request("x" * 1001, "f").scope


def test_builds_are_listed_newest_first_and_can_be_filtered(hf: Holdfast, manual: Manual, app: App) -> None:
    for fingerprint in ("f1", "f2", "f3"):
        app.environment.submit(configuration_id="c1", fingerprint=fingerprint)
    assert [build.fingerprint for build in hf.builds.list()] == ["f3", "f2", "f1"]
    page = hf.builds.list(limit=2)
    assert [build.fingerprint for build in hf.builds.list(before=page[-1].run_id)] == ["f1"]
    manual.run_all()
    hf.builds.invalidate(app.request(fingerprint="f2"))
    assert [build.fingerprint for build in hf.builds.list(job=app.environment, state="ready")] == ["f3", "f1"]
    assert [build.state for build in hf.builds.list(fingerprint="f2", scope="configuration_id:c1")] == ["stale"]
    assert hf.builds.list(job="other") == []


def test_a_worker_without_named_queues_serves_builds_too(live: Holdfast) -> None:
    app = App(live)
    run = app.submit()
    with live.worker() as worker:
        assert worker.queues == ["builds", "default"]
        assert run.result(timeout=60) == "doc in /environments/c1/1"
    with live.worker(queues=["default"]):
        stuck = app.submit(fingerprint="f2")
        with pytest.raises(Exception, match="still queued"):
            stuck.result(timeout=0.3)
        assert "serves queue builds" in stuck.why().reasons[0]
    live.cancel(stuck.snapshot.depends_on[0])
    with live.worker(), pytest.raises(RunFailed, match="build failed: it was cancelled"):
        stuck.result(timeout=60)


@pytest.mark.contract("S4")
def test_a_build_cannot_be_a_child_but_a_child_may_depend_on_one(hf: Holdfast, manual: Manual, app: App) -> None:
    @hf.job(name="refused")
    def refused(ctx: Context) -> None:
        ctx.submit_child(app.environment, configuration_id="c1", fingerprint="f1")

    @hf.job(name="parent")
    def parent(ctx: Context) -> list[str]:
        child = ctx.submit_child(app.process.using(depends_on=[app.request()]), document_id="doc")
        return ctx.gather(child)

    wrong, right = refused.submit(), parent.submit()
    manual.run_all()
    assert "can't be a child" in str(wrong.refresh().snapshot.error)
    assert right.result(timeout=1) == ["doc in /environments/c1/1"]


@pytest.mark.contract("Q8", "S4")
def test_a_refused_submission_creates_no_build(hf: Holdfast, app: App, database: Database) -> None:
    hf.start()
    before = database.counts("builds")
    with pytest.raises(Exception, match="there is no run nowhere"):
        app.process.using(depends_on=["nowhere", app.request()]).submit("doc")
    assert database.counts("builds") == before


@pytest.mark.contract("S3", "Q4")
def test_an_idempotent_repeat_requests_no_new_build(hf: Holdfast, manual: Manual, app: App) -> None:
    app.fails = True
    first = app.submit(idempotency_key="k")
    manual.run_all()
    assert first.refresh().state == "failed"
    assert app.submit(idempotency_key="k").id == first.id
    assert hf.builds.get(app.request()).state == "failed", "without a new submission nothing is rebuilt"


@pytest.mark.contract("Q8")
def test_a_full_queue_creates_neither_run_nor_build_and_builds_use_no_capacity(
    hf: Holdfast, manual: Manual, app: App, database: Database
) -> None:
    hf.queues.limit("default", max_queued=1)
    hf.queues.limit("*", max_queued=1)
    hf.queues.limit("builds", max_queued=1)
    first = app.submit(fingerprint="f1")
    app.environment.submit(configuration_id="c1", fingerprint="f2")
    assert database.count("builds") == 2, "a build is never refused"
    with pytest.raises(QueueFull):
        app.submit(fingerprint="f3")
    with pytest.raises(QueueFull):
        app.process.using(depends_on=[app.request(fingerprint="f3")]).submit_many([{"document_id": "a"}])
    assert (database.count("builds"), len(runs_of(hf, job="process"))) == (2, 1)
    manual.run_all()
    assert first.refresh().state == "succeeded"
    assert database.count("queue_capacity") == 0
    assert app.submit(fingerprint="f3").snapshot.place == "waits"
    assert hf.verify() == []
