"""Retention of artifacts: files that a rerun uses are kept, and rows are kept as long as their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.helpers.artifact_files import stored_files
from tests.contract.helpers.retention import DAY, TABLES, rows

from holdfast import ArtifactStoreUnavailable, Context, Holdfast, Pruned
from holdfast.runs import retention
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database


def a_video(hf: Holdfast, calls: list[str]) -> Any:
    """A pipeline whose second stage makes a file of each segment."""
    video = hf.pipeline("video")

    @video.stage()
    def script(text: str) -> list[str]:
        return text.split()

    @video.stage(after=script, each="segment", version="v/2")
    def audio(ctx: Context, segment: str) -> int:
        def make(path: Path) -> None:
            calls.append(segment)
            path.write_bytes(segment.encode())

        return ctx.artifact("sound.bin", make).size

    @video.stage(after=audio)
    def render(ctx: Context, segments: list[int]) -> int:
        return ctx.artifact("video.bin", bytes(sum(segments))).size

    return video


@pytest.mark.contract("L8")
def test_pipeline_outputs_are_stored_by_stage_version_and_segment_and_a_rerun_finds_them(
    artifact_hf: Holdfast, artifact_manual: Manual
) -> None:
    calls: list[str] = []
    first = a_video(artifact_hf, calls).submit(text="one two")
    artifact_manual.run_all()
    assert first.result(timeout=1) == 6
    assert sorted(calls) == ["one", "two"]
    places = [f"{found.folder}/{found.name}" for found in artifact_hf.artifacts.of(first.id)]
    assert places == [
        f"{first.id}/audio@v%2F2/0/sound.bin",
        f"{first.id}/audio@v%2F2/1/sound.bin",
        f"{first.id}/render@1/~/video.bin",
    ]
    assert stored_files(artifact_hf) == {f"{first.id[-2:]}/{place}" for place in places}

    again = artifact_hf.again(first.id)
    artifact_manual.run_all()
    assert again.result(timeout=1) == 6
    assert sorted(calls) == ["one", "two"], "complete files must not be created again"
    once_more = artifact_hf.again(again.id)
    artifact_manual.run_all()
    assert [f"{found.folder}/{found.name}" for found in artifact_hf.artifacts.of(once_more.id)] == places


@pytest.mark.contract("L8")
def test_an_output_that_a_rerun_uses_is_kept_when_its_run_is_deleted(
    artifact_hf: Holdfast, artifact_manual: Manual, clock: FakeClock, database: Database
) -> None:
    calls: list[str] = []
    first = a_video(artifact_hf, calls).submit(text="one two")
    artifact_manual.run_all()
    made_by = {found.run_id for found in artifact_hf.artifacts.of(first.id)}
    clock.advance(20 * DAY)
    again = artifact_hf.again(first.id)
    artifact_manual.run_all()
    kept = artifact_hf.artifacts.of(again.id)
    assert made_by.isdisjoint(found.run_id for found in kept)

    clock.advance(20 * DAY)
    assert artifact_hf.prune() == Pruned(), "the first pipeline must be kept as long as its rerun"
    artifact_hf.do(lambda tx: retention.remove(tx, sorted(made_by)))
    assert [found.read() for found in kept] == [b"one", b"two", bytes(6)]
    clock.advance(20 * DAY)
    artifact_hf.prune()
    artifact_hf.prune()
    assert rows(database) == dict.fromkeys(TABLES, 0)
    assert stored_files(artifact_hf) == set()


@pytest.mark.contract("L8")
def test_files_that_cannot_be_deleted_keep_their_rows(
    artifact_hf: Holdfast, artifact_manual: Manual, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @artifact_hf.job(name="work")
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", b"content")

    run = work.submit()
    artifact_manual.run_all()
    clock.advance(31 * DAY)

    def away(addresses: Sequence[str]) -> None:
        raise ArtifactStoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(artifact_hf._artifact_store, "remove", away)
        with pytest.raises(ArtifactStoreUnavailable):
            artifact_hf.prune()
    assert artifact_hf.artifacts.get(run.id, "out.txt").read() == b"content"
    assert artifact_hf.prune().runs == 1
