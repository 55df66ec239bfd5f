"""Media cache: reuses files that another run has made, and makes damaged files again.

Each file is an artifact of the run that made it. Its path follows from job, stage, version and segment, and its name
contains a digest of everything it depends on. The table `copies` says which runs have it, so that an edited script
reuses the segments that did not change. Every file is checked by its checksum before it is used.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from apps.factory.media_records import MediaRecords
from holdfast import ArtifactCorrupt, ArtifactNotFound, Context, GiveUp, Holdfast, RunNotFound

Write = Callable[[Path], object]
LOST = (ArtifactNotFound, ArtifactCorrupt, RunNotFound)
KEY_DIGITS = 12  # of the key, in a file's name


@dataclass(frozen=True)
class Part:
    """A file that a run has made, as later stages refer to it."""

    run_id: str
    name: str
    sha256: str
    size: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Product:
    """The files made from one input; `made` is false if all of them were reused."""

    parts: Mapping[str, Part]
    paths: Mapping[str, Path]
    made: bool


def key_of(ctx: Context, inputs: Mapping[str, Any]) -> str:
    """Return a digest of everything that a stage's output depends on: the stage, its version and its inputs."""
    content = {"stage": ctx.run.stage, "version": ctx.run.stage_version, **inputs}
    return sha256(json.dumps(content, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class MediaCache:
    """Finds, reuses and stores files for a run."""

    def __init__(self, hf: Holdfast, records: MediaRecords) -> None:
        self._hf, self._records = hf, records

    def provide(self, ctx: Context, inputs: Mapping[str, Any], files: Mapping[str, Write]) -> Product:
        """Return these files: this run's own, copies from a run with the same input, or newly made ones."""
        key, made = key_of(ctx, inputs), set[str]()
        owner = self._records.find_run(key)

        def copy_or(name: str, write: Write) -> Write:
            def write_file(path: Path) -> None:
                if owner is None or not self._copy(owner, _file_name(name, key), path):
                    write(path)
                    made.add(name)

            return write_file

        artifacts = {name: ctx.artifact(_file_name(name, key), copy_or(name, write)) for name, write in files.items()}
        if made or owner != ctx.run.id:
            self._records.add(key, ctx.run, made=bool(made))
        if made:
            ctx.log.info("made %s", ", ".join(sorted(made)))
        parts = {name: Part(ctx.run.id, one.name, one.sha256, one.size) for name, one in artifacts.items()}
        return Product(parts, {name: _local(one.path) for name, one in artifacts.items()}, bool(made))

    def fetch(self, ctx: Context, reference: Mapping[str, Any], write: Write) -> Path:
        """Return a checked file of an earlier stage; if it is damaged or missing, make the same bytes again."""
        part = Part(**reference)
        try:
            artifact = self._hf.artifacts.get(part.run_id, part.name)
            if artifact.sha256 == part.sha256:
                artifact.open(verify=True).close()
                return _local(artifact.path)
        except LOST as error:
            ctx.log.warning("%s is damaged or missing and is made again: %s", part.name, error)
        repaired = ctx.artifact(f"repaired-{part.name}", write)
        if repaired.sha256 != part.sha256:
            raise GiveUp(
                f"{part.name} was lost, and making it again gave different bytes; submit the script again",
                failure_type="NOT_THE_SAME",
            )
        return _local(repaired.path)

    def _copy(self, run_id: str, name: str, path: Path) -> bool:
        try:
            with self._hf.artifacts.open(run_id, name, verify=True) as source, open(path, "wb") as copy:
                shutil.copyfileobj(source, copy)
        except LOST:
            return False
        return True


def _file_name(name: str, key: str) -> str:
    """Add the key to a file's name: `film.mp4` → `film-0a1b2c3d4e5f.mp4`."""
    stem, _, ending = name.partition(".")
    return f"{stem}-{key[:KEY_DIGITS]}.{ending}"


def _local(path: Path | None) -> Path:
    assert path is not None, "`jobs` has checked that artifacts are stored in a folder"
    return path
