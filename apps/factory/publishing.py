"""Publishing: copies the finished files to the output folder, and writes the manifest last.

If there is a manifest, all files that it lists are there, complete and unchanged.
"""

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
    """Publish files and a manifest into a folder; files that are already there and match stay.

    New files are written beside the old ones before any is replaced, so a full disk does not damage an earlier version.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entries = {name: {"size": file.stat().st_size, "sha256": digest(file)} for name, file in sorted(files.items())}
    manifest = {**about, "files": entries}
    with _locked(folder):
        new = [name for name in entries if not _matches(folder / name, entries[name])]
        try:
            for name in new:
                _write(_part(folder, name), files[name])
            _write(_part(folder, MANIFEST), manifest)
            if new:
                (folder / MANIFEST).unlink(missing_ok=True)  # it lists files that are about to change
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
    """Remove a video's folder with all its editions; manifests go first, so that no reader sees part of an edition."""
    while folder.exists():
        with suppress(FileNotFoundError):  # another process is removing it, too
            for manifest in folder.glob(f"*/{MANIFEST}"):
                manifest.unlink(missing_ok=True)
                sync_folder(manifest.parent)
            shutil.rmtree(folder)
            sync_folder(folder.parent)


def digest(path: Path) -> str:
    with open(path, "rb") as file:
        hasher = sha256()
        while block := file.read(BLOCK):
            hasher.update(block)
        return hasher.hexdigest()


def read(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder; None if nothing is published there or the manifest can't be read."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict) else None


def _matches(path: Path, entry: Mapping[str, Any]) -> bool:
    return path.is_file() and path.stat().st_size == entry["size"] and digest(path) == entry["sha256"]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from publishing to the folder; the kernel frees the lock if this process dies."""
    with open(folder.with_name(f".{folder.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _part(folder: Path, name: str) -> Path:
    """Return the path of a partly written file. If its process is killed, the next process overwrites the file."""
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
