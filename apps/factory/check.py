"""Checks of the factory: the sample becomes a video whose files match the manifest."""

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
SCENES = [
    "Work that survives crashes",
    "A script becomes segments",
    "A lease names the worker",
    "What a stage looks like",
]
SLACK = 400  # milliseconds that a codec may add as padding

Files = dict[str, bytes]


def check(client: CheckClient) -> Iterator[Checked]:
    """Wait until the sample is published, download its files, and check them."""
    video = client.until(lambda: _published(client), "the sample is published")
    yield Checked(what=f"a script of {len(video['segments'])} scenes became a video", fault=_fault(video))
    manifest: dict[str, Any] = video["manifest"] or {"files": {}}
    files = {name: _file(client, video, name) for name in manifest["files"]}
    yield Checked(what=f"{len(files)} files match the manifest", fault=_checksum_fault(manifest, files))
    probe = _probe(files.get("video.mp4", b""))
    for description, find_fault in CHECKS.items():
        yield Checked(what=description, fault=find_fault(manifest, files, probe))
    yield Checked(what="a player can request a part of the video", fault=_range(client, video, files))
    yield Checked(what="each segment can be played by itself", fault=_segments(client, video))


def _published(client: CheckClient) -> dict[str, Any] | None:
    response = client.http.get(SAMPLE)
    if response.status_code == 404:
        return None  # the sample is not submitted yet
    video: dict[str, Any] = response.raise_for_status().json()
    return video if video["ended"] else None


def _fault(video: dict[str, Any]) -> str | None:
    titles = [segment["title"] for segment in video["segments"]]
    if video["state"] != "succeeded" or video["manifest"] is None:
        return f"the video is {video['state']}: {video['error']}"
    return None if titles[: len(SCENES)] == SCENES else f"the scenes are {titles}"


def _edition_path(video: dict[str, Any]) -> str:
    return f"{SAMPLE}/editions/{video['edition']}"


def _file(client: CheckClient, video: dict[str, Any], name: str) -> bytes:
    return client.http.get(f"{_edition_path(video)}/files/{name}").raise_for_status().content


def _checksum_fault(manifest: dict[str, Any], files: Files) -> str | None:
    wrong = [name for name, entry in manifest["files"].items() if sha256(files[name]).hexdigest() != entry["sha256"]]
    if wrong:
        return f"wrong checksums: {wrong}"
    expected = {"video.mp4", "captions.srt", "chapters.json", "poster.jpg"}
    return None if expected == set(files) else f"the files are {sorted(files)}"


def _probe(content: bytes) -> str:
    """Decode a file from beginning to end, and return what ffmpeg prints about it."""
    with tempfile.NamedTemporaryFile(suffix=".mp4") as file:
        file.write(content)
        file.flush()
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner", "-i", file.name, "-f", "null", "-"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def _length(manifest: dict[str, Any], files: Files, probe: str) -> str | None:
    match = re.search(r"Duration: (\d+):(\d+):(\d+)\.(\d+)", probe)
    if match is None:
        return f"ffmpeg printed: {probe[-300:]}"
    hours, minutes, seconds, hundredths = map(int, match.groups())
    length = ((hours * 60 + minutes) * 60 + seconds) * 1000 + hundredths * 10
    if not 20_000 <= length <= 60_000:
        return f"it is {length} ms long, not about half a minute"
    return None if abs(length - manifest["milliseconds"]) < SLACK else f"{length} ms, not {manifest['milliseconds']}"


def _streams(manifest: dict[str, Any], files: Files, probe: str) -> str | None:
    size = f"{manifest['video_format']['width']}x{manifest['video_format']['height']}"
    pictures = re.search(rf"Video: h264 .*\b{size}\b", probe)
    return None if pictures and "Audio: aac" in probe else f"ffmpeg printed: {probe[-600:]}"


def _frames(manifest: dict[str, Any], files: Files, probe: str) -> str | None:
    played = re.findall(r"frame=\s*(\d+)", probe)
    expected = manifest["milliseconds"] * manifest["video_format"]["fps"] // 1000
    broken = re.search(r"(?i)error|invalid|corrupt", probe)
    complete = not broken and played and abs(int(played[-1]) - expected) <= 1
    return None if complete else f"{played[-1:]} frames of {expected}"


def _chapters(manifest: dict[str, Any], files: Files, probe: str) -> str | None:
    count = probe.partition("Output #0")[0].count("Chapter #0:")
    return None if count == manifest["segments"] else f"{count} chapters of {manifest['segments']}"


def _captions(manifest: dict[str, Any], files: Files, probe: str) -> str | None:
    text = files["captions.srt"].decode()
    times = re.findall(r"(\d\d):(\d\d):(\d\d),(\d\d\d)", text)
    at = [((int(h) * 60 + int(m)) * 60 + int(s)) * 1000 + int(ms) for h, m, s, ms in times]
    if at != sorted(at) or not at or at[-1] > manifest["milliseconds"]:
        return "the times of the captions are out of order"
    return (
        None
        if "Workers may die at any moment" in text.replace("\n", " ")
        else "the captions lack words of the narration"
    )


def _range(client: CheckClient, video: dict[str, Any], files: Files) -> str | None:
    response = client.http.get(f"{_edition_path(video)}/files/video.mp4", headers={"Range": "bytes=100-199"})
    same = response.status_code == 206 and response.content == files["video.mp4"][100:200]
    return None if same else f"the answer was {response.status_code} with {len(response.content)} bytes"


def _segments(client: CheckClient, video: dict[str, Any]) -> str | None:
    for segment in video["segments"]:
        for name, magic in (("film.mp4", b"ftyp"), ("thumbnail.jpg", b"\xff\xd8\xff")):
            response = client.http.get(f"{_edition_path(video)}/segments/{segment['number']}/{name}")
            same = sha256(response.content).hexdigest() == segment["parts"][name]["sha256"]
            if response.status_code != 200 or not same or magic not in response.content[:12]:
                return f"{name} of segment {segment['number']} is wrong; the answer was {response.status_code}"
    return None


CHECKS: dict[str, Callable[[dict[str, Any], Files, str], str | None]] = {
    "the video is about half a minute long, as the manifest says": _length,
    "the video has pictures and sound": _streams,
    "the video plays to its last frame": _frames,
    "the video has a chapter for each scene": _chapters,
    "the captions follow the narration": _captions,
}
