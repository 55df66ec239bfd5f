"""Deleting a video: all of its data and nothing else is deleted, and an interrupted deletion can be finished."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from apps.factory.tests.instance import SCENES, SCRIPT, TINY, FactoryInstance

EDITED = SCRIPT.replace("It is easy to say.", "It is short.")
TABLES = ("videos", "editions", "products", "copies", "holdfast_runs", "holdfast_outcomes", "holdfast_artifacts")


class Interrupted(Exception):
    """Stands for a crash of the process that deletes."""


def rows_left(instance: FactoryInstance) -> dict[str, int]:
    return {table: len(instance.rows(f"select 1 as one from {table}")) for table in TABLES}


def files_left(instance: FactoryInstance) -> list[Path]:
    return [path for root in (instance.output, instance.artifacts) for path in root.rglob("*") if path.is_file()]


def test_deleting_a_video_removes_its_rows_runs_artifacts_and_published_files(each_factory: FactoryInstance) -> None:
    edition = each_factory.create(**TINY)
    each_factory.make(edition)
    second = each_factory.edit(edition, EDITED)
    each_factory.make(second)
    again = each_factory.repeat(second, from_stage="commit")
    assert again.result(timeout=1)["edition"] == 2

    each_factory.videos.delete(edition.video_id, by="alice")
    assert set(rows_left(each_factory).values()) == {0}
    assert files_left(each_factory) == []
    assert not (each_factory.output / edition.video_id).exists()
    assert [one.details["run"] for one in each_factory.hf.audit_log()] == [edition.run_id, second.run_id, again.id]
    assert each_factory.hf.verify(artifacts=True) == []
    with pytest.raises(each_factory.videos.VideoNotFound):
        each_factory.videos.delete(edition.video_id)


@pytest.mark.contract("L8")
def test_files_of_other_videos_stay_and_are_reused(factory: FactoryInstance) -> None:
    first, second = factory.create(**TINY), factory.create(**TINY)
    manifest = factory.make(first)
    factory.make(second)
    products = rows_left(factory)["products"]
    factory.videos.delete(second.video_id)
    assert rows_left(factory)["products"] == products
    assert factory.done(first, within=1) == manifest
    assert (factory.output / first.video_id / "1" / "video.mp4").is_file()
    edited = factory.edit(first, EDITED)
    factory.make(edited)
    assert factory.made(edited)["audio"] == [number == 2 for number in range(SCENES)], "other scenes were made again"
    assert factory.hf.verify(artifacts=True) == []


def test_a_video_that_is_being_made_can_not_be_deleted(factory: FactoryInstance) -> None:
    edition = factory.create(**TINY)
    factory.manual.orchestrate()
    before, worker = rows_left(factory), factory.manual.worker("by hand", queues=["factory"])
    with pytest.raises(factory.videos.VideoBusy, match="is being made by run"):
        factory.videos.delete(edition.video_id)
    [claim] = worker.claim()
    factory.hf.cancel(edition.run_id)
    factory.manual.orchestrate()
    with pytest.raises(factory.videos.VideoBusy):
        factory.videos.delete(edition.video_id)
    assert rows_left(factory)["videos"] == before["videos"]
    assert factory.rows("select deleting_at from videos") == [{"deleting_at": None}]
    worker.work(claim)
    factory.manual.orchestrate()
    factory.videos.delete(edition.video_id)
    assert set(rows_left(factory).values()) == {0}

    old = factory.create(**TINY)
    new = factory.edit(old, EDITED)
    factory.hf.cancel(new.run_id)
    factory.manual.promote()
    with pytest.raises(factory.videos.VideoBusy):
        factory.videos.delete(old.video_id)
    assert factory.videos.edit(old.video_id, EDITED).number == 3


def test_concurrent_deletions_leave_nothing_behind(each_factory: FactoryInstance) -> None:
    edition = each_factory.create(**TINY)
    each_factory.make(edition)
    each_factory.make(each_factory.edit(edition, EDITED))
    begin = Barrier(3)

    def delete() -> None:
        begin.wait()
        with suppress(each_factory.videos.VideoBusy, each_factory.videos.VideoNotFound):
            each_factory.videos.delete(edition.video_id)

    with ThreadPoolExecutor(3) as threads:
        for one in [threads.submit(delete) for _ in range(3)]:
            one.result(timeout=60)
    with suppress(each_factory.videos.VideoNotFound):  # each deletion may have found the others in progress
        each_factory.videos.delete(edition.video_id)
    assert set(rows_left(each_factory).values()) == {0}
    assert files_left(each_factory) == []
    assert each_factory.hf.verify(artifacts=True) == []


@pytest.mark.parametrize("step", ["unpublish", "files", "first run", "last run", "rows"])
def test_an_interrupted_deletion_can_be_finished(
    factory: FactoryInstance, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    edition, other = factory.create(**TINY), factory.create("# Other\n\n## Scene\n\nWords.\n", **TINY)
    factory.make(edition)
    factory.make(factory.edit(edition, EDITED))
    publishing, hf, video_status = (
        factory.videos.publishing,
        factory.hf,
        __import__("apps.factory.video_status", fromlist=["listed"]),
    )
    deleted: list[str] = []

    def run_deleted(run: Any, **options: Any) -> Any:
        if not options.get("dry_run"):
            if (step == "first run") == (not deleted) and step in ("first run", "last run"):
                raise Interrupted
            deleted.append(run)
        return type(hf).delete(hf, run, **options)

    def interrupt(*_: Any, **__: Any) -> Any:
        raise Interrupted

    with monkeypatch.context() as broken:
        if step == "unpublish":
            broken.setattr(publishing, "unpublish", interrupt)
        elif step == "files":
            broken.setattr(publishing.shutil, "rmtree", interrupt)
        elif step == "rows":
            broken.setattr(factory.videos, "_delete_rows", interrupt)
        broken.setattr(hf, "delete", run_deleted)
        with pytest.raises(Interrupted):
            factory.videos.delete(edition.video_id)

    assert hf.verify(artifacts=True) == []
    with factory.tables.database().read() as session:
        assert [one["video_id"] for one in video_status.listed(session, limit=9)] == [other.video_id]
        assert [one["video_id"] for one in factory.videos.deleting(session)] == [edition.video_id]
        with pytest.raises(factory.videos.VideoNotFound):
            video_status.status_of(session, edition.video_id)
    with pytest.raises(factory.videos.VideoNotFound):
        factory.videos.edit(edition.video_id, EDITED)
    if step != "unpublish":
        assert publishing.read(factory.output / edition.video_id / "1") is None, "part of an edition is still published"

    factory.videos.delete(edition.video_id)
    with factory.tables.database().read() as session:
        assert factory.videos.deleting(session) == []
    assert [row["id"] for row in factory.rows("select id from videos")] == [other.video_id]
    assert not (factory.output / edition.video_id).exists()
    assert factory.done(other, within=1) == publishing.read(factory.output / other.video_id / "1")
    assert hf.verify(artifacts=True) == []
