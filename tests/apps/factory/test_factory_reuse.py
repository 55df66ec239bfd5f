"""What is made, where it lies, and what is not made again: in this thread, with everything real but the processes."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import threading
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace as Namespace
from typing import IO, Any

import numpy as np
import pytest
from apps.factory import encoding, publishing, speech
from apps.factory.formats import RATE
from numpy.typing import NDArray
from tests.apps.factory.plant import SCENES, SCRIPT, TINY, Plant

EDITED = SCRIPT.replace("It is easy to say.", "It is short.")
ALL = {"audio": [True] * SCENES, "visuals": [True] * SCENES, "render": True}
NOTHING = {"audio": [False] * SCENES, "visuals": [False] * SCENES, "render": False}


def only(number: int) -> dict[str, list[bool] | bool]:
    return {
        "audio": [number == one for one in range(SCENES)],
        "visuals": [number == one for one in range(SCENES)],
        "render": True,
    }


def film(built: Plant, edition: Any, number: int, name: str = "film.mp4", stage: str = "visuals") -> Path:
    part = built.result(edition, stage)[number]["parts"][name]
    found = built.hf.artifacts.get(part["run_id"], part["name"]).path
    assert found is not None
    return found


@pytest.mark.contract("L10", "L8")
def test_a_script_becomes_a_video_and_the_same_script_the_same_bytes(either: Plant) -> None:
    first = either.create(**TINY)
    manifest = either.make(first)
    assert either.made(first) == ALL
    folder = either.output / first.video_id / "1"
    assert json.loads((folder / "manifest.json").read_bytes()) == manifest
    assert sorted(manifest["files"]) == ["captions.srt", "chapters.json", "poster.jpg", "video.mp4"]
    for name, told in manifest["files"].items():
        content = (folder / name).read_bytes()
        assert (len(content), sha256(content).hexdigest()) == (told["size"], told["sha256"])
    assert not [one for one in folder.iterdir() if one.name.startswith(".")], "no half file is left"
    assert manifest["synthesiser"][0].startswith("espeak-ng")
    chapters = json.loads((folder / "chapters.json").read_text())
    assert [one["title"] for one in chapters] == ["Tides", "The moon", "The code", "The end"]
    assert chapters[-1]["ends"] == manifest["milliseconds"]
    assert "The moon pulls the water." in (folder / "captions.srt").read_text()

    again = either.create(**TINY)
    assert again.video_id != first.video_id
    assert either.make(again)["files"] == manifest["files"]
    assert either.made(again) == NOTHING, "it was there already"
    for name in ("nothing", "a\0b", "a" * 100):
        with pytest.raises(either.videos.VideoNotFound):
            either.edit(Namespace(video_id=name), SCRIPT)


@pytest.mark.contract("L10")
def test_the_video_shows_and_speaks_its_scenes_in_their_order(own: Plant) -> None:
    edition = own.create(**TINY)
    own.make(edition)
    video = own.output / edition.video_id / "1" / "video.mp4"
    assert pictures(video) == [one for number in range(SCENES) for one in pictures(film(own, edition, number))]
    heard, begins = sound(video), 0
    for scene, told in zip(own.result(edition, "script"), own.result(edition, "audio"), strict=True):
        narration = speech.speak(scene["narration"], voice=TINY["voice"], pace=TINY["pace"])
        spoken = np.frombuffer(narration.samples, "<i2").astype(float)
        assert alike(heard[begins : begins + len(spoken)], spoken) > 0.9
        begins += told["milliseconds"] * RATE // 1000
    assert len(heard) >= begins


def pictures(file: Path) -> list[str]:
    """A digest of each picture that a player would show."""
    told = ffmpeg("-i", file, "-map", "0:v", "-f", "framemd5", "-").decode()
    return [line.split()[-1] for line in told.splitlines() if not line.startswith("#")]


def sound(file: Path) -> NDArray[np.float64]:
    """The samples that a player would play."""
    return np.frombuffer(ffmpeg("-i", file, "-map", "0:a", "-f", "s16le", "-ac", "1", "-"), "<i2").astype(float)


def ffmpeg(*words: str | Path) -> bytes:
    command = [encoding.program(), "-nostdin", "-loglevel", "error", *words]
    return subprocess.run(command, capture_output=True, check=True).stdout


def alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """1 if both are the same but for their loudness, about 0 if they have nothing to do with each other."""
    whole = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / whole if whole else 0.0


@pytest.mark.contract("L8")
def test_an_edit_makes_its_own_segment_and_the_render_anew_and_nothing_else(own: Plant) -> None:
    first = own.create(**TINY)
    before = own.make(first)
    places = [film(own, first, number).relative_to(own.artifacts) for number in range(SCENES)]
    assert [place.parts[-3:-1] for place in places] == [("visuals@1", str(number)) for number in range(SCENES)]
    assert all(first.run_id in place.parts for place in places)
    encoded = len(own.calls())
    second = own.edit(first, EDITED)
    assert (second.video_id, second.number) == (first.video_id, 2)
    after = own.make(second)
    assert own.made(second) == only(2)
    assert len(own.calls()) - encoded == 1 + 2, "one segment is encoded; the render measures and joins"
    assert after["files"]["video.mp4"] != before["files"]["video.mp4"]

    back = own.edit(first, SCRIPT)
    assert own.make(back)["files"] == before["files"]
    assert own.made(back) == NOTHING
    moved = own.edit(first, SCRIPT.replace("## The end\n\nThen it falls again.\n", "").replace(
        "## The moon", "## The end\n\nThen it falls again.\n\n## The moon"
    ))  # fmt: skip
    own.make(moved)
    assert own.made(moved) == {**NOTHING, "render": True}, "a scene that has moved is the same scene"
    assert own.times() == {"audio": [1] * 5, "visuals": [1] * 5, "render": [1] * 3}


@pytest.mark.contract("L8")
def test_another_version_of_a_stage_makes_anew_what_depends_on_it(own: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    edition = own.create(**TINY)
    before = own.make(edition)
    monkeypatch.setattr(own.jobs.video.stages["visuals"], "version", "2")
    again = own.create(**TINY)
    assert own.make(again)["files"] == before["files"], "this version makes the same"
    # As what it made is the same to the byte, what comes after it is not made again.
    assert own.made(again) == {**NOTHING, "visuals": [True] * SCENES}
    assert film(own, again, 0).parts[-3] == "visuals@2"
    monkeypatch.setattr(own.jobs.video.stages["render"], "version", "2")
    third = own.create(**TINY)
    own.make(third)
    assert own.made(third) == {**NOTHING, "render": True}


@pytest.mark.contract("L8")
def test_what_was_damaged_is_made_again_and_all_else_is_taken_over(own: Plant) -> None:
    edition = own.create(**TINY)
    before = own.make(edition)
    cut, lost = film(own, edition, 1), film(own, edition, 2, "speech.wav", "audio")
    cut.write_bytes(cut.read_bytes()[:-100])
    lost.unlink()

    again = own.repeat(edition)
    assert again.result(timeout=1)["files"] == before["files"]
    parts = {
        stage.name: own.hf.pipelines.segments(again.id, stage.name)
        for stage in own.hf.pipelines.show(again.id).stages
        if stage.split
    }
    made = {
        stage: [own.hf.get(cell.run_id).result(timeout=1)["made"] for cell in cells] for stage, cells in parts.items()
    }
    assert made == {"audio": [False, False, True, False], "visuals": [False, True, False, False]}
    assert {stage: sorted(times) for stage, times in own.times().items()} == {
        "audio": [1, 1, 1, 2],
        "visuals": [1, 1, 1, 2],
        "render": [1],
    }


@pytest.mark.contract("L8")
def test_a_render_that_finds_a_damaged_segment_mends_it_to_the_same_bytes(
    own: Plant, caplog: pytest.LogCaptureFixture
) -> None:
    edition = own.create(**TINY)
    before = own.make(edition)
    cut = film(own, edition, 3)
    cut.write_bytes(cut.read_bytes()[:200])
    film(own, edition, 0, "speech.json", "audio").unlink()
    with own.tables.database().write() as session:
        session.execute(own.tables.Made.__table__.delete())  # nothing to copy the video from
    for part in own.result(edition, "render")["parts"].values():
        found = own.hf.artifacts.get(part["run_id"], part["name"]).path
        assert found is not None
        found.unlink()

    again = own.repeat(edition, from_stage="render")
    assert again.result(timeout=1)["files"] == before["files"]
    assert caplog.text.count("is lost and made again") == 2


@pytest.mark.contract("L8")
def test_a_commit_that_finds_a_damaged_render_joins_it_again(own: Plant) -> None:
    edition = own.create(**TINY)
    before = own.make(edition)
    shutil.rmtree(own.output)
    part = own.result(edition, "render")["parts"]["video.mp4"]
    cut = own.hf.artifacts.get(part["run_id"], part["name"]).path
    assert cut is not None
    cut.write_bytes(cut.read_bytes()[:500])
    again = own.repeat(edition, from_stage="commit")
    assert again.result(timeout=1) == before
    video = own.output / edition.video_id / "1" / "video.mp4"
    assert sha256(video.read_bytes()).hexdigest() == before["files"]["video.mp4"]["sha256"]


@pytest.mark.contract("L8")
def test_two_who_publish_something_different_at_once_never_leave_a_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of the one, the other begins: whenever there is a manifest, it tells what lies beside it."""
    folder, queued = tmp_path / "output", threading.Event()
    files = {who: {name: _file(tmp_path / who / name, who) for name in ("a", "b")} for who in ("old", "one", "other")}
    other = threading.Thread(target=lambda: publishing.publish(folder, files["other"], {"by": "other"}))
    lock, replace, seen = fcntl.flock, os.replace, list[str | None]()

    def locked(file: Any, how: int) -> None:
        if threading.current_thread() is other:
            queued.set()
        lock(file, how)

    def replaced(source: Path, target: Path) -> None:
        replace(source, target)
        seen.append(_published(folder))
        if not queued.is_set():
            other.start()
            assert queued.wait(60)

    publishing.publish(folder, files["old"], {"by": "old"})
    monkeypatch.setattr(fcntl, "flock", locked)
    monkeypatch.setattr(os, "replace", replaced)
    publishing.publish(folder, files["one"], {"by": "one"})
    other.join(60)
    assert seen == [None, None, "one", None, None, "other"]
    assert sorted(one.name for one in folder.iterdir()) == ["a", "b", "manifest.json"]


@pytest.mark.contract("L8")
def test_a_disk_that_is_full_takes_nothing_away_that_was_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, old, new = tmp_path / "output", _file(tmp_path / "old", "old"), _file(tmp_path / "new", "new")
    publishing.publish(folder, {"a": old, "b": old}, {"by": "old"})

    def full(source: IO[bytes], target: IO[bytes]) -> None:
        target.write(source.read(1))
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    with pytest.raises(OSError, match="no space"):
        publishing.publish(folder, {"a": old, "b": new}, {"by": "new"})
    assert _published(folder) == "old"
    assert sorted(one.name for one in folder.iterdir()) == ["a", "b", "manifest.json"]
    (folder / "manifest.json").write_bytes(b'{"files"')
    assert publishing.read(folder) is None, "what can't be read is not there"


def _file(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


def _published(folder: Path) -> str | None:
    """Whose manifest is there, if one is; it tells the truth."""
    found = publishing.read(folder)
    if found is None:
        return None
    assert all(publishing.digest(folder / name) == told["sha256"] for name, told in found["files"].items())
    return str(found["by"])


def test_what_is_wrong_changes_nothing(own: Plant) -> None:
    scripts, videos = own.videos.scripts, own.videos
    with pytest.raises(scripts.ScriptInvalid):
        own.create("# Title only")
    edition = own.create(**TINY)
    with pytest.raises(scripts.ScriptInvalid):
        own.edit(edition, "no script")
    with pytest.raises(videos.EditedMeanwhile):
        videos.edit(edition.video_id, EDITED, after=7)
    with pytest.raises(videos.VideoNotFound):
        videos.edit("nothing", EDITED)
    for name, content in (("../x", b""), ("fine", b"no picture"), ("fine", b"x" * 3_000_001)):
        with pytest.raises(own.videos.slides.PictureInvalid):
            videos.add_picture(name, content)
    assert (
        len(own.rows("select 1 from editions"))
        == len(own.rows("select 1 from videos"))
        == len(own.hf.pipelines.list())
        == 1
    )
    assert own.rows("select 1 from pictures") == []
