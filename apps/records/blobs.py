"""Blobs: the documents' bytes, each under its own digest. A path never comes from anyone outside."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from apps.shared.files import sync_folder, written_whole

DIGEST = re.compile(r"[0-9a-f]{64}")
PIECE = 1 << 20


class Blobs:
    """A folder of files, whole or not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        if not DIGEST.fullmatch(digest):
            raise ValueError(f"{digest!r} is no digest")
        return self.folder / digest[:2] / digest

    def put(self, source: Path, digest: str) -> Path:
        """Keep a copy of a file; who keeps it once more makes it young again, so that no one collects it."""
        path = self.path(digest)
        try:
            os.utime(path)
            return path
        except FileNotFoundError:
            pass
        path.parent.mkdir(parents=True, exist_ok=True)
        sync_folder(self.folder)
        part = path.with_name(f"{digest}.{secrets.token_hex(4)}.part")
        with source.open("rb") as reading, written_whole(path, part=part) as writing:
            shutil.copyfileobj(reading, writing, PIECE)
        return path

    def older_than(self, seconds: float) -> Iterator[str]:
        """The digests of what was put before that; what a crash left half is removed on the way."""
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

    def is_whole(self, digest: str) -> bool:
        """Whether the bytes are those that were put."""
        with self.path(digest).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == digest
