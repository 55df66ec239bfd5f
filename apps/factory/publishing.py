"""Publishing: the last act. The files first, each whole or not at all; then the manifest: who finds it finds all of
them, and those that it tells of."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from apps.shared.files import sync_folder

MANIFEST = "manifest.json"
BLOCK = 1 << 20


def publish(folder: Path, files: Mapping[str, Path], about: Mapping[str, Any]) -> dict[str, Any]:
    """Put files and manifest into a folder; what is there and right stays. The same input gives the same folder.

    What was published there before stays until all that is new lies beside it: a full disk takes nothing away.
    """
    folder.mkdir(parents=True, exist_ok=True)
    told = {name: {"size": file.stat().st_size, "sha256": digest(file)} for name, file in sorted(files.items())}
    manifest = {**about, "files": told}
    with _alone(folder):
        new = [name for name in told if not _is_there(folder / name, told[name])]
        try:
            for name in new:
                _write(_part(folder, name), files[name])
            _write(_part(folder, MANIFEST), manifest)
            if new:
                (folder / MANIFEST).unlink(missing_ok=True)  # it would tell of files that are not these any more
                sync_folder(folder)
            for names in (new, [MANIFEST]):
                for name in names:
                    os.replace(_part(folder, name), folder / name)
                sync_folder(folder)
        finally:
            for name in (*new, MANIFEST):
                _part(folder, name).unlink(missing_ok=True)
    return manifest


def unpublish(folder: Path) -> None:
    """Remove a video's folder with all its editions; the manifests first: no reader finds half an edition."""
    while folder.exists():
        with suppress(FileNotFoundError):  # another process removes it, too
            for manifest in folder.glob(f"*/{MANIFEST}"):
                manifest.unlink(missing_ok=True)
                sync_folder(manifest.parent)
            shutil.rmtree(folder)
            sync_folder(folder.parent)


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
def _alone(folder: Path) -> Iterator[None]:
    """No other process publishes there meanwhile; one that dies lets go."""
    with open(folder.with_name(f".{folder.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _part(folder: Path, name: str) -> Path:
    """A file on its way. What a killed process leaves, the next one overwrites."""
    return folder / f".{name}.part"


def _write(path: Path, content: Path | Mapping[str, Any]) -> None:
    with open(path, "wb") as file:
        if isinstance(content, Path):
            with open(content, "rb") as source:
                shutil.copyfileobj(source, file)
        else:
            file.write((json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode())
        file.flush()
        os.fsync(file.fileno())
