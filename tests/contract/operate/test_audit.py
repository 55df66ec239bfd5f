"""Audit: each operator action is recorded with its actor and time in the same transaction."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.fixtures import Database

from holdfast import Holdfast, InvalidArguments, RunFilter, RunNotFound
from holdfast.testing import FakeClock, Manual


@pytest.fixture
def actions(hf: Holdfast, manual: Manual) -> dict[str, Callable[..., Any]]:
    """Every operator action as a function that takes `by`, under its name."""

    @hf.job(name="work")
    def work() -> None: ...

    @hf.schedule("0 * * * *", name="hourly")
    def hourly() -> None: ...

    @hf.build(name="environment")
    def environment(fingerprint: str) -> str:
        return fingerprint

    video = hf.pipeline("video")

    @video.stage()
    def script(text: str) -> str:
        return text

    @video.stage(after=script)
    def render(script: str) -> str:
        return script

    done, waiting = work.submit(), work.using(delay=60).submit()
    made, seen = environment.submit(fingerprint="f"), video.submit(text="t")
    manual.run_all()
    manual.worker().register()
    slot = hf.clock.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    return {
        "submit": lambda **by: work.submit_by(by.get("by"), {}),
        "submit pipeline": lambda **by: video.submit_by(by.get("by"), {"text": "u"}),
        "submit build": lambda **by: environment.submit_by(by.get("by"), {"fingerprint": "g"}),
        "cancel": lambda **by: hf.cancel(waiting.id, **by),
        "again": lambda **by: hf.again(done.id, **by),
        "pause": lambda **by: hf.queues.pause("default", note="maintenance", **by),
        "resume": lambda **by: hf.queues.resume("default", **by),
        "limit": lambda **by: hf.queues.limit("default", max_queued=1000, **by),
        "trigger": lambda **by: hf.schedules.trigger("hourly", scheduled_for=slot, **by),
        "pause schedule": lambda **by: hf.schedules.pause("hourly", note="maintenance", **by),
        "resume schedule": lambda **by: hf.schedules.resume("hourly", **by),
        "invalidate": lambda **by: hf.builds.invalidate(made.id, reason="old", **by),
        "rebuild": lambda **by: hf.builds.rebuild(made.id, **by),
        "rerun": lambda **by: hf.pipelines.rerun(seen.id, from_stage="render", **by),
        "cancel_matching": lambda **by: hf.bulk.cancel(RunFilter(job="work"), **by),
        "again_matching": lambda **by: hf.bulk.again(RunFilter(job="work"), **by),
    }


def test_every_operator_action_is_recorded_with_actor_and_target(
    hf: Holdfast, actions: dict[str, Any], clock: FakeClock
) -> None:
    for verb, call in actions.items():
        clock.advance(timedelta(seconds=1))
        call(by=f"ann {verb}")

    log = hf.audit_log(limit=100)[::-1]
    assert [(one.by, one.action) for one in log] == [(f"ann {verb}", verb.partition(" ")[0]) for verb in actions]
    assert [one.happened_at for one in log] == sorted(one.happened_at for one in log)
    of = {one.by.removeprefix("ann "): one for one in log}
    assert of["submit"].details == {"job": "work"}
    assert of["cancel"].details == {"reason": "cancelled", "state": "cancelled"}
    assert of["again"].details["run"] == hf.search(RunFilter(job="work", state="queued")).items[0].id
    assert of["pause"].details == {"queue": "default", "note": "maintenance"}
    assert of["limit"].details == {"queue": "default", "limits": '{"max_queued":1000}'}
    assert of["trigger"].details["schedule"] == "hourly"
    assert of["cancel_matching"].details == {"filter": {"job": "work"}, "reason": "cancelled"}
    concerns_a_run = {name for name, one in of.items() if one.run_id is not None}
    assert concerns_a_run == set(actions) - {"pause", "resume", "limit", "pause schedule", "resume schedule"}
    for one in log:
        if one.run_id is not None:
            assert one.by in [event.data.get("by") for event in hf.timeline(one.run_id)]


def test_an_action_without_an_actor_is_recorded_without_one(
    hf: Holdfast, actions: dict[str, Any], database: Database
) -> None:
    for call in actions.values():
        call()
    assert hf.audit_log() == []


@pytest.mark.parametrize("by", ["", "x" * 201, "nul\x00", "half \ud800", 7, b"ann"])
def test_an_invalid_actor_name_is_refused_and_changes_nothing(
    hf: Holdfast, actions: dict[str, Any], database: Database, by: Any
) -> None:
    before = database.counts()
    for call in actions.values():
        with pytest.raises(InvalidArguments, match="by"):
            call(by=by)
    assert database.counts() == before
    assert hf.audit_log() == []
    assert hf.queues.get("default").paused_at is None


def test_an_idempotent_repeat_is_not_recorded_as_a_submission(hf: Holdfast) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    @hf.build(name="environment")
    def environment(fingerprint: str) -> str:
        return fingerprint

    once = work.using(idempotency_key="k")
    for by in ("ann", "bob"):
        once.submit_by(by, {})
        environment.submit_by(by, {"fingerprint": "f"})
    assert [one.by for one in hf.audit_log()] == ["ann", "ann"]


def test_a_refused_action_is_not_recorded(hf: Holdfast) -> None:
    for call in (lambda: hf.cancel("nothing", by="ann"), lambda: hf.again("nothing", by="ann")):
        with pytest.raises(RunNotFound):
            call()
    assert hf.audit_log() == []


def test_the_audit_log_is_read_page_by_page(hf: Holdfast) -> None:
    for number in range(7):
        hf.queues.pause(f"q{number}", by="ann")

    pages, before = [], None
    while page := hf.audit_log(limit=3, before=before):
        pages.append([one.details["queue"] for one in page])
        before = page[-1].cursor

    assert pages == [["q6", "q5", "q4"], ["q3", "q2", "q1"], ["q0"]]
    wrongs: list[dict[str, Any]] = [{"limit": 0}, {"before": "x"}]
    for wrong in wrongs:
        with pytest.raises(InvalidArguments):
            hf.audit_log(**wrong)


def test_any_sql_client_reads_events_through_the_view(
    hf: Holdfast, actions: dict[str, Any], database: Database
) -> None:
    actions["pause"](by="ann")
    actions["cancel"](by="bob")

    rows = database.all(
        "select run_id, data from holdfast_event_view where kind = 'OPERATOR_ACTION' order by happened_at, id"
    )
    assert [(run, json.loads(data)["by"]) for run, data in rows] == [
        (one.run_id, one.by) for one in reversed(hf.audit_log())
    ]
    assert len(rows) == 2
