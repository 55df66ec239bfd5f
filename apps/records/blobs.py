"""Blobs: the files of documents, each stored under its SHA-256 digest. No part of a path comes from a user."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from apps.shared.files import atomic_write, sync_folder

DIGEST = re.compile(r"[0-9a-f]{64}")
COPY_BYTES = 1 << 20


class Blobs:
    """A folder of files. Each file is complete or missing, never partial."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        if not DIGEST.fullmatch(digest):
            raise ValueError(f"{digest!r} is not a SHA-256 digest")
        return self.folder / digest[:2] / digest

    def put(self, source: Path, digest: str) -> Path:
        """Store a copy of a file. If it is already stored, reset its age, so that the clean-up does not remove it."""
        path = self.path(digest)
        try:
            os.utime(path)
            return path
        except FileNotFoundError:
            pass
        path.parent.mkdir(parents=True, exist_ok=True)
        sync_folder(self.folder)
        part = path.with_name(f"{digest}.{secrets.token_hex(4)}.part")
        with source.open("rb") as original, atomic_write(path, part=part) as copy:
            shutil.copyfileobj(original, copy, COPY_BYTES)
        return path

    def older_than(self, seconds: float) -> Iterator[str]:
        """Yield the digests of files older than this; delete partial files of this age, which a crash has left."""
        before = time.time() - seconds
        for path in self.folder.glob("??/*"):
            try:
                old = path.stat().st_mtime < before
            except FileNotFoundError:
                continue
            if old and path.suffix == ".part":
                path.unlink(missing_ok=True)
            elif old and DIGEST.fullmatch(path.name):
                yield path.name

    def remove(self, digest: str) -> None:
        self.path(digest).unlink(missing_ok=True)

    def is_unchanged(self, digest: str) -> bool:
        """Whether the stored bytes still have this digest."""
        with self.path(digest).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
