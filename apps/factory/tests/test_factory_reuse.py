"""Reuse of files: what is made, where it is stored, and what is not made again. All work runs in this thread."""

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
from apps.factory.tests.instance import SCENES, SCRIPT, TINY, FactoryInstance
from numpy.typing import NDArray

EDITED = SCRIPT.replace("It is easy to say.", "It is short.")
ALL = {"audio": [True] * SCENES, "visuals": [True] * SCENES, "render": True}
NOTHING = {"audio": [False] * SCENES, "visuals": [False] * SCENES, "render": False}


def only(number: int) -> dict[str, list[bool] | bool]:
    return {
        "audio": [number == one for one in range(SCENES)],
        "visuals": [number == one for one in range(SCENES)],
        "render": True,
    }


def film(instance: FactoryInstance, edition: Any, number: int, name: str = "film.mp4", stage: str = "visuals") -> Path:
    part = instance.result(edition, stage)[number]["parts"][name]
    found = instance.hf.artifacts.get(part["run_id"], part["name"]).path
    assert found is not None
    return found


@pytest.mark.contract("L10", "L8")
def test_the_same_script_gives_a_video_with_the_same_bytes(each_factory: FactoryInstance) -> None:
    first = each_factory.create(**TINY)
    manifest = each_factory.make(first)
    assert each_factory.made(first) == ALL
    folder = each_factory.output / first.video_id / "1"
    assert json.loads((folder / "manifest.json").read_bytes()) == manifest
    assert sorted(manifest["files"]) == ["captions.srt", "chapters.json", "poster.jpg", "video.mp4"]
    for name, entry in manifest["files"].items():
        content = (folder / name).read_bytes()
        assert (len(content), sha256(content).hexdigest()) == (entry["size"], entry["sha256"])
    assert not [one for one in folder.iterdir() if one.name.startswith(".")], "a partly written file is left"
    assert manifest["synthesiser"][0].startswith("espeak-ng")
    chapters = json.loads((folder / "chapters.json").read_text())
    assert [one["title"] for one in chapters] == ["Tides", "The moon", "The code", "The end"]
    assert chapters[-1]["end_ms"] == manifest["milliseconds"]
    assert "The moon pulls the water." in (folder / "captions.srt").read_text()

    again = each_factory.create(**TINY)
    assert again.video_id != first.video_id
    assert each_factory.make(again)["files"] == manifest["files"]
    assert each_factory.made(again) == NOTHING, "files were made instead of reused"
    for name in ("nothing", "a\0b", "a" * 100):
        with pytest.raises(each_factory.videos.VideoNotFound):
            each_factory.edit(Namespace(video_id=name), SCRIPT)


@pytest.mark.contract("L10")
def test_the_video_shows_and_speaks_its_scenes_in_order(factory: FactoryInstance) -> None:
    edition = factory.create(**TINY)
    factory.make(edition)
    video = factory.output / edition.video_id / "1" / "video.mp4"
    assert pictures(video) == [one for number in range(SCENES) for one in pictures(film(factory, edition, number))]
    samples, start = sound(video), 0
    for scene, audio in zip(factory.result(edition, "script"), factory.result(edition, "audio"), strict=True):
        narration = speech.speak(scene["narration"], voice=TINY["voice"], pace=TINY["pace"])
        spoken = np.frombuffer(narration.samples, "<i2").astype(float)
        assert similarity(samples[start : start + len(spoken)], spoken) > 0.9
        start += audio["milliseconds"] * RATE // 1000
    assert len(samples) >= start


def pictures(file: Path) -> list[str]:
    """Return a digest of each picture that a player would show."""
    output = ffmpeg("-i", file, "-map", "0:v", "-f", "framemd5", "-").decode()
    return [line.split()[-1] for line in output.splitlines() if not line.startswith("#")]


def sound(file: Path) -> NDArray[np.float64]:
    """Return the samples that a player would play."""
    return np.frombuffer(ffmpeg("-i", file, "-map", "0:a", "-f", "s16le", "-ac", "1", "-"), "<i2").astype(float)


def ffmpeg(*arguments: str | Path) -> bytes:
    command = [encoding.program(), "-nostdin", "-loglevel", "error", *arguments]
    return subprocess.run(command, capture_output=True, check=True).stdout


def similarity(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return 1 if both sounds differ only in loudness, and about 0 if they are unrelated."""
    norms = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / norms if norms else 0.0


@pytest.mark.contract("L8")
def test_an_edit_makes_only_the_changed_segment_and_the_render_again(factory: FactoryInstance) -> None:
    first = factory.create(**TINY)
    before = factory.make(first)
    paths = [film(factory, first, number).relative_to(factory.artifacts) for number in range(SCENES)]
    assert [path.parts[-3:-1] for path in paths] == [("visuals@1", str(number)) for number in range(SCENES)]
    assert all(first.run_id in path.parts for path in paths)
    encoded = len(factory.calls())
    second = factory.edit(first, EDITED)
    assert (second.video_id, second.number) == (first.video_id, 2)
    after = factory.make(second)
    assert factory.made(second) == only(2)
    assert len(factory.calls()) - encoded == 1 + 2, "one segment is encoded, and the render calls ffmpeg twice"
    assert after["files"]["video.mp4"] != before["files"]["video.mp4"]

    back = factory.edit(first, SCRIPT)
    assert factory.make(back)["files"] == before["files"]
    assert factory.made(back) == NOTHING
    moved = factory.edit(first, SCRIPT.replace("## The end\n\nThen it falls again.\n", "").replace(
        "## The moon", "## The end\n\nThen it falls again.\n\n## The moon"
    ))  # fmt: skip
    factory.make(moved)
    assert factory.made(moved) == {**NOTHING, "render": True}, "a moved scene was made again"
    assert factory.times() == {"audio": [1] * 5, "visuals": [1] * 5, "render": [1] * 3}


@pytest.mark.contract("L8")
def test_a_new_version_of_a_stage_makes_its_files_again(
    factory: FactoryInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    edition = factory.create(**TINY)
    before = factory.make(edition)
    monkeypatch.setattr(factory.jobs.video.stages["visuals"], "version", "2")
    again = factory.create(**TINY)
    assert factory.make(again)["files"] == before["files"], "this version gives the same bytes"
    # The new files have the same bytes, so later stages are not made again.
    assert factory.made(again) == {**NOTHING, "visuals": [True] * SCENES}
    assert film(factory, again, 0).parts[-3] == "visuals@2"
    monkeypatch.setattr(factory.jobs.video.stages["render"], "version", "2")
    third = factory.create(**TINY)
    factory.make(third)
    assert factory.made(third) == {**NOTHING, "render": True}


@pytest.mark.contract("L8")
def test_only_damaged_files_are_made_again(factory: FactoryInstance) -> None:
    edition = factory.create(**TINY)
    before = factory.make(edition)
    cut, lost = film(factory, edition, 1), film(factory, edition, 2, "speech.wav", "audio")
    cut.write_bytes(cut.read_bytes()[:-100])
    lost.unlink()

    again = factory.repeat(edition)
    assert again.result(timeout=1)["files"] == before["files"]
    parts = {
        stage.name: factory.hf.pipelines.segments(again.id, stage.name)
        for stage in factory.hf.pipelines.show(again.id).stages
        if stage.split
    }
    made = {
        stage: [factory.hf.get(segment.run_id).result(timeout=1)["made"] for segment in segments]
        for stage, segments in parts.items()
    }
    assert made == {"audio": [False, False, True, False], "visuals": [False, True, False, False]}
    assert {stage: sorted(times) for stage, times in factory.times().items()} == {
        "audio": [1, 1, 1, 2],
        "visuals": [1, 1, 1, 2],
        "render": [1],
    }


@pytest.mark.contract("L8")
def test_a_render_repairs_a_damaged_segment_to_the_same_bytes(
    factory: FactoryInstance, caplog: pytest.LogCaptureFixture
) -> None:
    edition = factory.create(**TINY)
    before = factory.make(edition)
    cut = film(factory, edition, 3)
    cut.write_bytes(cut.read_bytes()[:200])
    film(factory, edition, 0, "speech.json", "audio").unlink()
    with factory.tables.database().write() as session:
        session.execute(factory.tables.MediaProduct.__table__.delete())  # so that the video can't be copied
    for part in factory.result(edition, "render")["parts"].values():
        found = factory.hf.artifacts.get(part["run_id"], part["name"]).path
        assert found is not None
        found.unlink()

    again = factory.repeat(edition, from_stage="render")
    assert again.result(timeout=1)["files"] == before["files"]
    assert caplog.text.count("is damaged or missing and is made again") == 2


@pytest.mark.contract("L8")
def test_a_commit_renders_a_damaged_video_again(factory: FactoryInstance) -> None:
    edition = factory.create(**TINY)
    before = factory.make(edition)
    shutil.rmtree(factory.output)
    part = factory.result(edition, "render")["parts"]["video.mp4"]
    cut = factory.hf.artifacts.get(part["run_id"], part["name"]).path
    assert cut is not None
    cut.write_bytes(cut.read_bytes()[:500])
    again = factory.repeat(edition, from_stage="commit")
    assert again.result(timeout=1) == before
    video = factory.output / edition.video_id / "1" / "video.mp4"
    assert sha256(video.read_bytes()).hexdigest() == before["files"]["video.mp4"]["sha256"]


@pytest.mark.contract("L8")
def test_concurrent_publications_never_mix_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One publication starts during another: whenever there is a manifest, its files match it."""
    folder, queued = tmp_path / "output", threading.Event()
    files = {
        publisher: {name: _file(tmp_path / publisher / name, publisher) for name in ("a", "b")}
        for publisher in ("old", "one", "other")
    }
    other = threading.Thread(target=lambda: publishing.publish(folder, files["other"], {"by": "other"}))
    lock, replace, seen = fcntl.flock, os.replace, list[str | None]()

    def locked(file: Any, operation: int) -> None:
        if threading.current_thread() is other:
            queued.set()
        lock(file, operation)

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
def test_a_full_disk_does_not_damage_a_published_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert publishing.read(folder) is None, "an unreadable manifest counts as missing"


def _file(path: Path, content: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    return path


def _published(folder: Path) -> str | None:
    """Return the publisher in the manifest, if there is one, and check that the files match it."""
    manifest = publishing.read(folder)
    if manifest is None:
        return None
    assert all(publishing.digest(folder / name) == entry["sha256"] for name, entry in manifest["files"].items())
    return str(manifest["by"])


def test_invalid_submissions_change_nothing(factory: FactoryInstance) -> None:
    scripts, videos = factory.videos.scripts, factory.videos
    with pytest.raises(scripts.ScriptInvalid):
        factory.create("# Title only")
    edition = factory.create(**TINY)
    with pytest.raises(scripts.ScriptInvalid):
        factory.edit(edition, "no script")
    with pytest.raises(videos.EditedMeanwhile):
        videos.edit(edition.video_id, EDITED, after=7)
    with pytest.raises(videos.VideoNotFound):
        videos.edit("nothing", EDITED)
    for name, content in (("../x", b""), ("fine", b"no picture"), ("fine", b"x" * 3_000_001)):
        with pytest.raises(factory.videos.slides.PictureInvalid):
            videos.add_picture(name, content)
    assert (
        len(factory.rows("select 1 from editions"))
        == len(factory.rows("select 1 from videos"))
        == len(factory.hf.pipelines.list())
        == 1
    )
    assert factory.rows("select 1 from pictures") == []
