"""Artifacts: files that a run has made, each at a place that follows from its run and name.

Written to a temporary name, flushed to disk, renamed, and only then recorded, under the fence, with size and checksum.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast import leases
from holdfast.errors import InvalidArguments
from holdfast.leases import Lease
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    run_id: str
    name: str
    attempt: int
    size: int
    sha256: str
    made_at: datetime

    def told(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size, "sha256": self.sha256}


def keep(store: Store, folder: Path, lease: Lease, name: str, content: bytes | Path) -> Artifact:
    """Store a file for a run that is still ours, or raise LeaseLost and leave nothing."""
    target = path_of(folder, lease.run_id, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    # The attempt in the name: a stale worker that still writes does so beside us, not over us.
    temporary = target.parent / f".{name}.{lease.attempt}.part"
    try:
        size, sha256 = _write(temporary, content)

        def record(tx: Transaction) -> Artifact:
            leases.require(tx, lease)
            made = Artifact(
                run_id=lease.run_id,
                name=name,
                attempt=lease.attempt,
                size=size,
                sha256=sha256,
                made_at=tx.now,
            )
            tx.put("delete_artifact", place=lease.run_id, name=name)
            tx.put("insert_artifact", place=lease.run_id, **{field: getattr(made, field) for field in Artifact.__slots__})
            os.replace(temporary, target)
            return made

        return store.do(record)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def of(tx: Transaction, run_id: str) -> list[Artifact]:
    return [Artifact(**row) for row in tx.all("find_artifacts", run_id=run_id)]


def path_of(folder: Path, run_id: str, name: str) -> Path:
    """Where an artifact lies; a name can't leave its folder."""
    if not _NAME.fullmatch(name):
        raise InvalidArguments(
            f"artifact name {name!r}: letters, digits, '_', '-' and '.', at most 120, not first a '.' or '-'"
        )
    return folder / run_id[-2:] / run_id / name


def _write(path: Path, content: bytes | Path) -> tuple[int, str]:
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            with open(content, "rb") as source:
                shutil.copyfileobj(source, file)
        file.flush()
        os.fsync(file.fileno())
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return path.stat().st_size, digest.hexdigest()
