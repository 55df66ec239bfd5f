"""Previews of artifacts: the start of a text, or an image of a type that is safe to show in a browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from holdfast.values.artifacts import Artifact
from holdfast.web.api.artifacts import PREVIEW

TEXT = 64_000
IMAGE = 10_000_000
_IMAGES = frozenset(ending for ending, kind in PREVIEW.items() if kind.startswith("image/"))
_BINARY = frozenset(
    (".pdf", ".zip", ".gz", ".zst", ".mp4", ".mp3", ".wav", ".parquet", ".sqlite", ".db", ".tar", ".bin", ".pkl")
)


@dataclass(frozen=True, slots=True)
class Preview:
    """The preview of an artifact; `kind` is text, image or none."""

    kind: str
    text: str = ""
    cut: bool = False


def kind_of(artifact: Artifact) -> str:
    """Return text, image or none, decided by the file name and size."""
    ending = PurePath(artifact.name).suffix.lower()
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
