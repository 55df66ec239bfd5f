"""Who may move what: seen through the views `jobs` and `segments`, on each kind of database."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apps.factory.plant import TINY, Plant
from tests.process.support import wait_for

from holdfast import LeaseLost

SHORT = "# Tides\n\n## The moon\n\nThe moon pulls the water.\n"
STAGES = ("script", "audio", "visuals", "render", "commit")


def states(built: Plant) -> list[str]:
    [job] = built.rows("select * from jobs")
    return [job[f"{stage}_state"] for stage in STAGES]


def leases(built: Plant) -> dict[str, Any]:
    [job] = built.rows("select * from jobs")
    assert all((job[f"{stage}_lease_owner"] is None) == (job[f"{stage}_lease_expires_at"] is None) for stage in STAGES)
    return {stage: job[f"{stage}_lease_owner"] for stage in STAGES if job[f"{stage}_lease_owner"] is not None}


def diagnostic(built: Plant) -> str | None:
    [job] = built.rows("select diagnostic from jobs")
    found: str | None = job["diagnostic"]
    return found


@pytest.mark.contract("L1", "L2", "L3", "L4", "L5", "L6")
def test_each_role_moves_only_what_is_its_own_and_a_late_worker_changes_nothing(either: Plant) -> None:
    manual, hf = either.manual, either.hf
    prompt, late = (manual.worker(name, queues=["factory"]) for name in ("prompt", "late"))
    edition = either.create(SHORT, **TINY)
    assert states(either) == ["NEW"] * 5, "whoever hands it in advances no stage, not even the first"
    assert prompt.claim() == []
    manual.orchestrate()
    assert states(either) == ["READY", "NEW", "NEW", "NEW", "NEW"], "an orchestrator does no work"

    [claim] = prompt.claim()
    assert states(either)[0] == "RUNNING"
    assert leases(either) == {"script": "prompt"}
    assert late.claim() == [], "no one else gets it, and what is NEW can't be claimed"
    with pytest.raises(LeaseLost):
        late.finish(claim)
    prompt.work(claim)
    assert states(either) == ["DONE", "NEW", "NEW", "NEW", "NEW"], "a worker advances no one"
    assert prompt.claim() == []
    manual.orchestrate()
    assert states(either) == ["DONE", "READY", "NEW", "NEW", "NEW"]

    [stale] = late.claim()
    assert leases(either) == {"audio": "late"}
    query = "select state, takeovers from segments where run_id = :id"
    lost = stale.lease.run_id

    def taken_over() -> int:
        manual.orchestrate()
        found: int = either.rows(query, id=lost)[0]["takeovers"]
        return found

    wait_for(taken_over, "its lease has run out")
    assert [dict(row) for row in either.rows(query, id=lost)] == [{"state": "READY", "takeovers": 1}]
    [taken] = [event for _, event in hf.news(lost).events if event.kind == "RUN_TAKEN_OVER"]
    told = "taken from late, because its lease ran out, and made READY again (audio[0])"
    assert diagnostic(either) == f"{taken.happened_at:%Y-%m-%d %H:%M:%S} UTC: {told}"
    [other] = prompt.claim()
    assert other.lease.run_id == lost, "the other segment was skipped by no one"
    assert told in str(diagnostic(either)), "until it is done"
    prompt.work(other)
    assert diagnostic(either) is None
    manual.run_all()
    manifest = either.done(edition, within=1)
    assert states(either) == ["DONE"] * 5
    assert leases(either) == {}

    files, times = hf.artifacts.of(edition.run_id), either.times()
    assert {one.run_id for one in files if one.attempt > 1} == {lost}
    with pytest.raises(LeaseLost):
        late.work(stale)
    with pytest.raises(LeaseLost):
        late.finish(stale)
    assert hf.artifacts.of(edition.run_id) == files
    assert either.times() == times
    assert either.done(edition, within=1) == manifest
    assert hf.verify(artifacts=True) == []


@pytest.mark.contract("L1")
def test_an_error_is_seen_and_so_is_the_job_that_failed_of_it(own: Plant) -> None:
    own.videos.add_picture("moon", _picture())
    own.create(SHORT + "\n![the moon](moon)\n", **TINY)
    with own.tables.database().write() as session:
        session.execute(own.tables.Picture.__table__.delete())
    own.manual.run_all()
    assert states(own) == ["DONE", "DONE", "ERROR", "NEW", "NEW"], "what never ran is never in error"
    [job] = own.rows("select job_state, diagnostic from jobs")
    assert job["job_state"] == "failed"
    assert "is not there any more" in job["diagnostic"]
    skipped = own.rows("select stage, state, reason from stages where stage in ('render', 'commit')")
    assert {row["state"] for row in skipped} == {"NEW"}
    assert all("is not there any more" in row["reason"] for row in skipped)
    assert own.rows("select 1 from segments where state = 'ERROR' and attempt = 0 and segment <> ''") == []
    assert own.hf.verify() == []
    [row] = own.rows("select error from segments where stage = 'visuals' and segment = '1'")
    assert "is not there any more" in row["error"]


def _picture() -> bytes:
    import io

    from PIL import Image

    content = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 80, 60)).save(content, "PNG")
    return content.getvalue()
