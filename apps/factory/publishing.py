"""Publishing: the last act. The files first, each whole or not at all; then the manifest: who finds it finds all of
them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

MANIFEST = "manifest.json"
BLOCK = 1 << 20


def publish(folder: Path, files: Mapping[str, Path], about: Mapping[str, Any], *, by: str) -> dict[str, Any]:
    """Put files and manifest into a folder; what is there and right stays. The same input gives the same folder.

    `by` names who does it: two who publish the same at once each write to files of their own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {}
    for name, source in sorted(files.items()):
        told[name] = {"size": source.stat().st_size, "sha256": digest(source)}
        if not _is_there(folder / name, told[name]):
            with open(source, "rb") as content, _new(folder / name, by) as file:
                shutil.copyfileobj(content, file)
    manifest = {**about, "files": told}
    text = (json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()
    with _new(folder / MANIFEST, by) as file:
        file.write(text)
    return manifest


def digest(path: Path) -> str:
    with open(path, "rb") as file:
        found = sha256()
        while block := file.read(BLOCK):
            found.update(block)
        return found.hexdigest()


def read(folder: Path) -> dict[str, Any] | None:
    """What was published there; None if nothing was, or not yet, or if it can't be read any more."""
    try:
        found = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("files"), dict) else None


def _is_there(path: Path, told: Mapping[str, Any]) -> bool:
    return path.is_file() and path.stat().st_size == told["size"] and digest(path) == told["sha256"]


@contextmanager
def _new(path: Path, by: str) -> Iterator[IO[bytes]]:
    """A file that gets its name when it is whole and on the disk. What a killed process leaves, its next try
    overwrites."""
    part = path.with_name(f".{path.name}.{by}.part")
    try:
        with open(part, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
        _settle(path.parent)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _settle(folder: Path) -> None:
    """See that a name is on the disk before the next one is: the manifest comes last after a power cut, too."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
