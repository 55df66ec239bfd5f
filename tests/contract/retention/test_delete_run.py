"""hf.delete: an ended run is deleted with all its rows and files; a run in use is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.segments import split
from tests.listing import runs_of

from holdfast import Context, Holdfast, RunInUse, RunNotFound
from holdfast.artifacts import artifacts
from holdfast.runs import retention
from holdfast.testing import Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

TABLES = ("runs", "outcomes", "artifacts", "steps", "waits", "ready", "dependencies", "leases", "child_cancellations")


@pytest.fixture
def hf(url: str, clock: Any, tmp_path: Path) -> Any:
    with Holdfast(url, clock=clock, artifacts=tmp_path / "artifacts") as made:
        yield made


def kept(hf: Holdfast) -> list[Path]:
    root = hf.settings.artifacts
    assert isinstance(root, Path)
    return [path for path in root.rglob("*") if path.is_file()]


def film(hf: Holdfast) -> Any:
    pipeline = hf.pipeline("film")

    @pipeline.stage()
    def listed(ctx: Context) -> list[int]:
        ctx.artifact("list.txt", b"list")
        return [1, 2]

    @pipeline.stage(after=listed, each="number")
    def each(ctx: Context, number: int) -> int:
        ctx.artifact("part.txt", b"part")
        return number

    return pipeline


def test_a_pipeline_is_deleted_with_its_stages_segments_artifacts_and_events(
    hf: Holdfast, database: Database, manual: Manual
) -> None:
    pipeline = film(hf)
    gone, stays = pipeline.submit(), pipeline.submit()
    manual.run_all()
    assert len(kept(hf)) == 6
    would = hf.delete(gone, dry_run=True)
    assert hf.get(gone.id).state == "succeeded"
    removed = hf.delete(gone, by="alice")
    assert (removed.runs, removed.artifacts) == (would.runs, would.artifacts) == (5, 3)
    with pytest.raises(RunNotFound):
        hf.get(gone.id)
    with pytest.raises(RunNotFound):
        hf.delete(gone)
    assert len(kept(hf)) == 3
    assert {one.id for one in runs_of(hf)} == {stays.id} | {one.id for one in runs_of(hf, parent=stays.id)}
    assert [(one.by, one.action, one.details) for one in hf.audit_log()] == [("alice", "delete", {"run": gone.id})]
    assert hf.verify(artifacts=True) == []
    hf.delete(stays)
    assert [database.count(table) for table in TABLES] == [0] * len(TABLES)
    assert kept(hf) == []


def test_a_run_that_has_not_ended_or_is_referenced_is_not_deleted(
    hf: Holdfast, database: Database, manual: Manual
) -> None:
    pipeline, worker = split(hf), manual.worker()
    run = pipeline.submit(values=[1, 2])
    with pytest.raises(RunInUse, match="has not ended; cancel it"):
        hf.delete(run)
    manual.orchestrate()
    [claim] = worker.claim()
    assert run.cancel() == "cancelled"
    manual.orchestrate()
    with pytest.raises(RunInUse, match=f"run {claim.lease.run_id} has not ended"):
        hf.delete(run)
    worker.work(claim)
    manual.orchestrate()
    assert hf.delete(run).runs == 5

    first = pipeline.submit(values=[1])
    manual.run_all()
    again = hf.pipelines.rerun(first, from_stage="last")
    manual.run_all()
    [stage, *_] = hf.pipelines.show(first.id).stages
    with pytest.raises(RunInUse, match=f"is a part of run {first.id}"):
        hf.delete(stage.run_id)
    with pytest.raises(RunInUse, match="still referenced by a rerun"):
        hf.delete(first)
    before = database.count("runs")
    assert hf.delete(again).runs == 2
    assert database.count("runs") == before - 2
    hf.delete(first)
    assert database.count("runs") == 0
    assert hf.verify() == []


@pytest.mark.parametrize("step", ["artifacts", "runs"])
def test_an_interrupted_deletion_can_be_repeated(
    hf: Holdfast, database: Database, manual: Manual, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    run = film(hf).submit()
    manual.run_all()

    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    module, name = {"artifacts": (artifacts, "remove"), "runs": (retention, "remove_events")}[step]
    with monkeypatch.context() as broken:
        broken.setattr(module, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            hf.delete(run)
    assert hf.get(run.id).state == "succeeded"
    assert hf.verify() == []
    assert hf.delete(run).runs == 5
    assert kept(hf) == []
    assert database.count("runs") == 0


def test_a_run_is_not_deleted_before_its_artifacts(hf: Holdfast, database: Database, manual: Manual) -> None:
    """On PostgreSQL and SQL Server another deletion may have locked the runs while this one looked for artifacts."""
    run = film(hf).submit()
    manual.run_all()
    with pytest.MonkeyPatch.context() as locked:
        locked.setattr(artifacts, "remove", lambda *_, **__: [])
        with pytest.raises(RunInUse, match="is being deleted; try again"):
            hf.delete(run)
    assert (database.count("runs"), database.count("artifacts"), len(kept(hf))) == (5, 3, 3)
    hf.delete(run)
    assert (database.count("runs"), database.count("artifacts"), len(kept(hf))) == (0, 0, 0)
