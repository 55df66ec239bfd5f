"""Previews: the beginning of an artifact as text, or an image that a browser may be trusted with."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.values.artifacts import Artifact

TEXT = 64_000
IMAGE = 10_000_000
_IMAGES = frozenset(("png", "jpg", "jpeg", "gif", "webp"))  # none of these can run anything
_BINARY = frozenset(("pdf", "zip", "gz", "zst", "mp4", "mp3", "wav", "parquet", "sqlite", "db", "tar", "bin", "pkl"))


@dataclass(frozen=True, slots=True)
class Preview:
    """What a page shows of an artifact; `kind` is text, image or none."""

    kind: str
    text: str = ""
    cut: bool = False


def kind_of(artifact: Artifact) -> str:
    """By its name: text, image, or none."""
    ending = artifact.name.rpartition(".")[2].lower()
    if ending in _IMAGES:
        return "image" if artifact.size <= IMAGE else "none"
    return "none" if ending in _BINARY else "text"


def of(artifact: Artifact) -> Preview:
    if kind_of(artifact) != "text":
        return Preview(kind_of(artifact))
    with artifact.open() as content:
        head = content.read(TEXT)
    if b"\x00" in head:
        return Preview("none")
    return Preview("text", head.decode("utf-8", "replace"), cut=artifact.size > len(head))
