"""Checks of the factory: that its sample has become a video that is what its manifest says."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import imageio_ffmpeg

from apps.shared.checks import CheckClient, Checked

SAMPLE = "/videos/sample"
SCENES = ["Work that holds fast", "A script becomes segments", "A lease says who works", "What a stage looks like"]
SLACK = 400  # milliseconds: a codec's own padding

Files = dict[str, bytes]


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait until the sample is published, fetch it all, and look at it."""
    video = client.until(lambda: _published(client), "the sample is published")
    yield Checked(what=f"a script of {len(video['cells'])} scenes has become a video", fault=_fault(video))
    manifest: dict[str, Any] = video["manifest"] or {"files": {}}
    files = {name: _file(client, video, name) for name in manifest["files"]}
    yield Checked(what=f"{len(files)} files are what the manifest says", fault=_sums(manifest, files))
    told = _probed(files.get("video.mp4", b""))
    for what, look in CHECKS.items():
        yield Checked(what=what, fault=look(manifest, files, told))
    yield Checked(what="a player gets the part of the video that it asks for", fault=_range(client, video, files))
    yield Checked(what="each segment can be seen by itself", fault=_segments(client, video))


def _published(client: CheckClient) -> dict[str, Any] | None:
    answer = client.http.get(SAMPLE)
    if answer.status_code == 404:
        return None  # it has not been handed in yet
    found: dict[str, Any] = answer.raise_for_status().json()
    return found if found["ended"] else None


def _fault(video: dict[str, Any]) -> str | None:
    titles = [cell["title"] for cell in video["cells"]]
    if video["state"] != "succeeded" or video["manifest"] is None:
        return f"it is {video['state']}: {video['error']}"
    return None if titles[: len(SCENES)] == SCENES else f"its scenes are {titles}"


def _address(video: dict[str, Any]) -> str:
    return f"{SAMPLE}/editions/{video['edition']}"


def _file(client: CheckClient, video: dict[str, Any], name: str) -> bytes:
    return client.http.get(f"{_address(video)}/files/{name}").raise_for_status().content


def _sums(manifest: dict[str, Any], files: Files) -> str | None:
    wrong = [name for name, told in manifest["files"].items() if sha256(files[name]).hexdigest() != told["sha256"]]
    wanted = {"video.mp4", "captions.srt", "chapters.json", "poster.jpg"}
    return f"not so: {wrong}" if wrong else None if wanted == set(files) else f"there are {sorted(files)}"


def _probed(content: bytes) -> str:
    """What ffmpeg says of a file, which it plays from the beginning to the end."""
    with tempfile.NamedTemporaryFile(suffix=".mp4") as file:
        file.write(content)
        file.flush()
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-i", file.name, "-f", "null", "-"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def _length(manifest: dict[str, Any], files: Files, told: str) -> str | None:
    found = re.search(r"Duration: (\d+):(\d+):(\d+)\.(\d+)", told)
    if found is None:
        return f"ffmpeg says: {told[-300:]}"
    hours, minutes, seconds, hundredths = map(int, found.groups())
    length = ((hours * 60 + minutes) * 60 + seconds) * 1000 + hundredths * 10
    if not 20_000 <= length <= 60_000:
        return f"it takes {length} ms, not about half a minute"
    return None if abs(length - manifest["milliseconds"]) < SLACK else f"{length} ms, not {manifest['milliseconds']}"


def _streams(manifest: dict[str, Any], files: Files, told: str) -> str | None:
    size = f"{manifest['shape']['width']}x{manifest['shape']['height']}"
    pictures = re.search(rf"Video: h264 .*\b{size}\b", told)
    return None if pictures and "Audio: aac" in told else f"ffmpeg says: {told[-600:]}"


def _whole(manifest: dict[str, Any], files: Files, told: str) -> str | None:
    played = re.findall(r"frame=\s*(\d+)", told)
    wanted = manifest["milliseconds"] * manifest["shape"]["fps"] // 1000
    broken = re.search(r"(?i)error|invalid|corrupt", told)
    return None if not broken and played and abs(int(played[-1]) - wanted) <= 1 else f"{played[-1:]} frames of {wanted}"


def _chapters(manifest: dict[str, Any], files: Files, told: str) -> str | None:
    count = told.partition("Output #0")[0].count("Chapter #0:")
    return None if count == manifest["segments"] else f"{count} chapters of {manifest['segments']}"


def _captions(manifest: dict[str, Any], files: Files, told: str) -> str | None:
    text = files["captions.srt"].decode()
    times = re.findall(r"(\d\d):(\d\d):(\d\d),(\d\d\d)", text)
    at = [((int(h) * 60 + int(m)) * 60 + int(s)) * 1000 + int(ms) for h, m, s, ms in times]
    if at != sorted(at) or not at or at[-1] > manifest["milliseconds"]:
        return "the times of the captions are out of order"
    return None if "Workers may die at any moment" in text.replace("\n", " ") else "words are missing"


def _range(client: CheckClient, video: dict[str, Any], files: Files) -> str | None:
    answer = client.http.get(f"{_address(video)}/files/video.mp4", headers={"Range": "bytes=100-199"})
    same = answer.status_code == 206 and answer.content == files["video.mp4"][100:200]
    return None if same else f"it answered {answer.status_code} with {len(answer.content)} bytes"


def _segments(client: CheckClient, video: dict[str, Any]) -> str | None:
    for cell in video["cells"]:
        for name, begins in (("film.mp4", b"ftyp"), ("thumbnail.jpg", b"\xff\xd8\xff")):
            answer = client.http.get(f"{_address(video)}/segments/{cell['number']}/{name}")
            right = answer.status_code == 200 and sha256(answer.content).hexdigest() == cell["parts"][name]["sha256"]
            if not right or begins not in answer.content[:12]:
                return f"{name} of segment {cell['number']} answered {answer.status_code}"
    return None


CHECKS: dict[str, Callable[[dict[str, Any], Files, str], str | None]] = {
    "it is about half a minute long, as the manifest says": _length,
    "it has pictures and sound": _streams,
    "it plays to its last frame": _whole,
    "it has a chapter for each scene": _chapters,
    "its captions follow what is said": _captions,
}
