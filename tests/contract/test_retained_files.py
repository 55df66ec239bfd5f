"""The files of a pipeline: a rerun finds them, what relies on them keeps them, and rows stay as long as files do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.contract.depots import lying_in
from tests.contract.retaining import DAY, TABLES, rows

from holdfast import Context, DepotUnavailable, Holdfast, Removed
from holdfast.runs import retention
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.conftest import Database


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
def test_a_pipelines_outputs_lie_where_stage_version_and_segment_say_and_a_rerun_finds_them(
    keeping: Holdfast, hands: Manual
) -> None:
    calls: list[str] = []
    first = a_video(keeping, calls).submit(text="one two")
    hands.run_all()
    assert first.result(timeout=1) == 6
    assert sorted(calls) == ["one", "two"]
    places = [f"{found.place}/{found.name}" for found in keeping.artifacts.of(first.id)]
    assert places == [
        f"{first.id}/audio@v%2F2/0/sound.bin",
        f"{first.id}/audio@v%2F2/1/sound.bin",
        f"{first.id}/render@1/~/video.bin",
    ]
    assert lying_in(keeping) == {f"{first.id[-2:]}/{place}" for place in places}

    again = keeping.again(first.id)
    hands.run_all()
    assert again.result(timeout=1) == 6
    assert sorted(calls) == ["one", "two"], "what is there and whole is not made again"
    once_more = keeping.again(again.id)
    hands.run_all()
    assert [f"{found.place}/{found.name}" for found in keeping.artifacts.of(once_more.id)] == places


@pytest.mark.contract("L8")
def test_an_output_that_a_rerun_relies_on_stays_when_the_run_that_made_it_goes(
    keeping: Holdfast, hands: Manual, clock: FakeClock, database: Database
) -> None:
    calls: list[str] = []
    first = a_video(keeping, calls).submit(text="one two")
    hands.run_all()
    made_by = {found.run_id for found in keeping.artifacts.of(first.id)}
    clock.advance(20 * DAY)
    again = keeping.again(first.id)
    hands.run_all()
    kept = keeping.artifacts.of(again.id)
    assert made_by.isdisjoint(found.run_id for found in kept)

    clock.advance(20 * DAY)
    assert keeping.retain() == Removed(), "and so does all of the pipeline that is repeated"
    keeping.do(lambda tx: retention.remove(tx, sorted(made_by)))
    assert [found.read() for found in kept] == [b"one", b"two", bytes(6)]
    clock.advance(20 * DAY)
    keeping.retain()
    keeping.retain()
    assert rows(database) == dict.fromkeys(TABLES, 0)
    assert lying_in(keeping) == set()


@pytest.mark.contract("L8")
def test_files_that_can_not_be_removed_keep_their_rows(
    keeping: Holdfast, hands: Manual, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @keeping.job(name="work")
    def work(ctx: Context) -> None:
        ctx.artifact("out.txt", b"content")

    run = work.submit()
    hands.run_all()
    clock.advance(31 * DAY)

    def away(addresses: Sequence[str]) -> None:
        raise DepotUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(keeping._artifact_store, "remove", away)
        with pytest.raises(DepotUnavailable):
            keeping.retain()
    assert keeping.artifacts.get(run.id, "out.txt").read() == b"content"
    assert keeping.retain().runs == 1
