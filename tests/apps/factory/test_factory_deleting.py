"""Deleting a video: all of it goes and nothing else; cut off at any point, it can be finished."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from tests.apps.factory.plant import SCENES, SCRIPT, TINY, Plant

EDITED = SCRIPT.replace("It is easy to say.", "It is short.")
TABLES = ("videos", "editions", "products", "copies", "holdfast_runs", "holdfast_outcomes", "holdfast_artifacts")


class CutOff(Exception):
    """Stands for a crash of the process that deletes."""


def rows_left(built: Plant) -> dict[str, int]:
    return {table: len(built.rows(f"select 1 as one from {table}")) for table in TABLES}


def files_left(built: Plant) -> list[Path]:
    return [path for root in (built.output, built.artifacts) for path in root.rglob("*") if path.is_file()]


def test_a_video_goes_with_its_rows_runs_artifacts_and_published_files(either: Plant) -> None:
    edition = either.create(**TINY)
    either.make(edition)
    second = either.edit(edition, EDITED)
    either.make(second)
    again = either.repeat(second, from_stage="commit")
    assert again.result(timeout=1)["edition"] == 2

    either.videos.delete(edition.video_id, by="alice")
    assert set(rows_left(either).values()) == {0}
    assert files_left(either) == []
    assert not (either.output / edition.video_id).exists()
    assert [one.what["run"] for one in either.hf.operations()] == [edition.run_id, second.run_id, again.id]
    assert either.hf.verify(artifacts=True) == []
    with pytest.raises(either.videos.VideoNotFound):
        either.videos.delete(edition.video_id)


@pytest.mark.contract("L8")
def test_what_other_videos_have_made_stays_and_is_used_again(own: Plant) -> None:
    first, second = own.create(**TINY), own.create(**TINY)
    manifest = own.make(first)
    own.make(second)
    products = rows_left(own)["products"]
    own.videos.delete(second.video_id)
    assert rows_left(own)["products"] == products
    assert own.done(first, within=1) == manifest
    assert (own.output / first.video_id / "1" / "video.mp4").is_file()
    edited = own.edit(first, EDITED)
    own.make(edited)
    assert own.made(edited)["audio"] == [number == 2 for number in range(SCENES)], "the others are not made again"
    assert own.hf.verify(artifacts=True) == []


def test_a_video_that_is_being_made_is_not_deleted(own: Plant) -> None:
    edition = own.create(**TINY)
    own.manual.orchestrate()
    before, worker = rows_left(own), own.manual.worker("by hand", queues=["factory"])
    with pytest.raises(own.videos.VideoBusy, match="is being made by run"):
        own.videos.delete(edition.video_id)
    [claim] = worker.claim()
    own.hf.cancel(edition.run_id)
    own.manual.orchestrate()
    with pytest.raises(own.videos.VideoBusy):
        own.videos.delete(edition.video_id)
    assert rows_left(own)["videos"] == before["videos"]
    assert own.rows("select deleting_at from videos") == [{"deleting_at": None}]
    worker.work(claim)
    own.manual.orchestrate()
    own.videos.delete(edition.video_id)
    assert set(rows_left(own).values()) == {0}

    old = own.create(**TINY)
    new = own.edit(old, EDITED)
    own.hf.cancel(new.run_id)
    own.manual.promote()
    with pytest.raises(own.videos.VideoBusy):
        own.videos.delete(old.video_id)
    assert own.videos.edit(old.video_id, EDITED).number == 3


def test_deletions_at_once_leave_nothing_behind(either: Plant) -> None:
    edition = either.create(**TINY)
    either.make(edition)
    either.make(either.edit(edition, EDITED))
    begin = Barrier(3)

    def delete() -> None:
        begin.wait()
        with suppress(either.videos.VideoBusy, either.videos.VideoNotFound):
            either.videos.delete(edition.video_id)

    with ThreadPoolExecutor(3) as threads:
        for one in [threads.submit(delete) for _ in range(3)]:
            one.result(timeout=60)
    with suppress(either.videos.VideoNotFound):  # each may have been in the others' way
        either.videos.delete(edition.video_id)
    assert set(rows_left(either).values()) == {0}
    assert files_left(either) == []
    assert either.hf.verify(artifacts=True) == []


@pytest.mark.parametrize("step", ["unpublish", "files", "first run", "last run", "rows"])
def test_a_deletion_that_was_cut_off_breaks_nothing_and_can_be_finished(
    own: Plant, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    edition, other = own.create(**TINY), own.create("# Other\n\n## Scene\n\nWords.\n", **TINY)
    own.make(edition)
    own.make(own.edit(edition, EDITED))
    publishing, hf, video_status = (
        own.videos.publishing,
        own.hf,
        __import__("apps.factory.video_status", fromlist=["listed"]),
    )
    deleted: list[str] = []

    def run_deleted(run: Any, **given: Any) -> Any:
        if not given.get("dry_run"):
            if (step == "first run") == (not deleted) and step in ("first run", "last run"):
                raise CutOff
            deleted.append(run)
        return type(hf).delete(hf, run, **given)

    def cut_off(*_: Any, **__: Any) -> Any:
        raise CutOff

    with monkeypatch.context() as broken:
        if step == "unpublish":
            broken.setattr(publishing, "unpublish", cut_off)
        elif step == "files":
            broken.setattr(publishing.shutil, "rmtree", cut_off)
        elif step == "rows":
            broken.setattr(own.videos, "_forget", cut_off)
        broken.setattr(hf, "delete", run_deleted)
        with pytest.raises(CutOff):
            own.videos.delete(edition.video_id)

    assert hf.verify(artifacts=True) == []
    with own.tables.database().read() as session:
        assert [one["video_id"] for one in video_status.listed(session, limit=9)] == [other.video_id]
        assert [one["video_id"] for one in own.videos.deleting(session)] == [edition.video_id]
        with pytest.raises(own.videos.VideoNotFound):
            video_status.status_of(session, edition.video_id)
    with pytest.raises(own.videos.VideoNotFound):
        own.videos.edit(edition.video_id, EDITED)
    if step != "unpublish":
        assert publishing.read(own.output / edition.video_id / "1") is None, "no half edition is published"

    own.videos.delete(edition.video_id)
    with own.tables.database().read() as session:
        assert own.videos.deleting(session) == []
    assert [row["id"] for row in own.rows("select id from videos")] == [other.video_id]
    assert not (own.output / edition.video_id).exists()
    assert own.done(other, within=1) == publishing.read(own.output / other.video_id / "1")
    assert hf.verify(artifacts=True) == []
