"""Roles: which transitions workers and orchestrators make, seen in the views `jobs` and `segments`."""

from __future__ import annotations

from typing import Any

import pytest
from apps.factory.tests.instance import TINY, FactoryInstance
from tests.process.support import wait_for

from holdfast import LeaseLost

SHORT = "# Tides\n\n## The moon\n\nThe moon pulls the water.\n"
STAGES = ("script", "audio", "visuals", "render", "commit")


def states(instance: FactoryInstance) -> list[str]:
    [job] = instance.rows("select * from jobs")
    return [job[f"{stage}_state"] for stage in STAGES]


def leases(instance: FactoryInstance) -> dict[str, Any]:
    [job] = instance.rows("select * from jobs")
    assert all((job[f"{stage}_lease_owner"] is None) == (job[f"{stage}_lease_expires_at"] is None) for stage in STAGES)
    return {stage: job[f"{stage}_lease_owner"] for stage in STAGES if job[f"{stage}_lease_owner"] is not None}


def diagnostic(instance: FactoryInstance) -> str | None:
    [job] = instance.rows("select diagnostic from jobs")
    text: str | None = job["diagnostic"]
    return text


@pytest.mark.contract("L1", "L2", "L3", "L4", "L5", "L6")
def test_each_role_makes_only_its_own_transitions_and_a_late_worker_changes_nothing(
    each_factory: FactoryInstance,
) -> None:
    manual, hf = each_factory.manual, each_factory.hf
    prompt, late = (manual.worker(name, queues=["factory"]) for name in ("prompt", "late"))
    edition = each_factory.create(SHORT, **TINY)
    assert states(each_factory) == ["NEW"] * 5, "submitting a script must not advance a stage"
    assert prompt.claim() == []
    manual.orchestrate()
    assert states(each_factory) == ["READY", "NEW", "NEW", "NEW", "NEW"], "an orchestrator must not execute a stage"

    [claim] = prompt.claim()
    assert states(each_factory)[0] == "RUNNING"
    assert leases(each_factory) == {"script": "prompt"}
    assert late.claim() == [], "a running or NEW stage can't be claimed"
    with pytest.raises(LeaseLost):
        late.finish(claim)
    prompt.work(claim)
    assert states(each_factory) == ["DONE", "NEW", "NEW", "NEW", "NEW"], "a worker must not advance another stage"
    assert prompt.claim() == []
    manual.orchestrate()
    assert states(each_factory) == ["DONE", "READY", "NEW", "NEW", "NEW"]

    [stale] = late.claim()
    assert leases(each_factory) == {"audio": "late"}
    query = "select state, takeovers from segments where run_id = :id"
    lost = stale.lease.run_id

    def taken_over() -> int:
        manual.orchestrate()
        takeovers: int = each_factory.rows(query, id=lost)[0]["takeovers"]
        return takeovers

    wait_for(taken_over, "the lease has expired and the segment was taken over")
    assert [dict(row) for row in each_factory.rows(query, id=lost)] == [{"state": "READY", "takeovers": 1}]
    [takeover] = [event for _, event in hf.timeline_page(lost).events if event.kind == "RUN_TAKEN_OVER"]
    text = "recovered from worker late because its lease expired; READY again (audio[0])"
    assert diagnostic(each_factory) == f"{takeover.happened_at:%Y-%m-%d %H:%M:%S} UTC: {text}"
    [other] = prompt.claim()
    assert other.lease.run_id == lost, "the recovered segment comes first"
    assert text in str(diagnostic(each_factory)), "the diagnostic stays until the segment is done"
    prompt.work(other)
    assert diagnostic(each_factory) is None
    manual.run_all()
    manifest = each_factory.done(edition, within=1)
    assert states(each_factory) == ["DONE"] * 5
    assert leases(each_factory) == {}

    files, times = hf.artifacts.of(edition.run_id), each_factory.times()
    assert {one.run_id for one in files if one.claim > 1} == {lost}
    with pytest.raises(LeaseLost):
        late.work(stale)
    with pytest.raises(LeaseLost):
        late.finish(stale)
    assert hf.artifacts.of(edition.run_id) == files
    assert each_factory.times() == times
    assert each_factory.done(edition, within=1) == manifest
    assert hf.verify(artifacts=True) == []


@pytest.mark.contract("L1")
def test_the_views_show_a_failed_segment_and_its_failed_job(factory: FactoryInstance) -> None:
    factory.videos.add_picture("moon", _picture())
    factory.create(SHORT + "\n![the moon](moon)\n", **TINY)
    with factory.tables.database().write() as session:
        session.execute(factory.tables.Picture.__table__.delete())
    factory.manual.run_all()
    assert states(factory) == ["DONE", "DONE", "ERROR", "NEW", "NEW"], "a stage that never ran is not in ERROR"
    [job] = factory.rows("select job_state, diagnostic from jobs")
    assert job["job_state"] == "failed"
    assert "no longer exists" in job["diagnostic"]
    skipped = factory.rows("select stage, state, reason from stages where stage in ('render', 'commit')")
    assert {row["state"] for row in skipped} == {"NEW"}
    assert all("no longer exists" in row["reason"] for row in skipped)
    assert factory.rows("select 1 from segments where state = 'ERROR' and claim = 0 and segment <> ''") == []
    assert factory.hf.verify() == []
    [row] = factory.rows("select error from segments where stage = 'visuals' and segment = '1'")
    assert "no longer exists" in row["error"]


def _picture() -> bytes:
    import io

    from PIL import Image

    content = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 80, 60)).save(content, "PNG")
    return content.getvalue()
