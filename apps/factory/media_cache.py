"""Media cache: what has been made is not made again, whichever job needs it; what was damaged is.

Each file is an artifact of the run that made it, at a place that follows from job, stage, version and segment; its name
bears a digest of all that it depends on. `copies` remembers which run has what: so an edited script takes over the
segments that it has not touched. Nothing is believed without its checksum.
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
SHOWN = 12  # digits of the key that a name bears


@dataclass(frozen=True)
class Part:
    """A file that a run has made, as other stages are told of it."""

    run_id: str
    name: str
    sha256: str
    size: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Product:
    """Files that were made of one input; `made` says whether that was now."""

    parts: Mapping[str, Part]
    paths: Mapping[str, Path]
    made: bool


def key_of(ctx: Context, inputs: Mapping[str, Any]) -> str:
    """A digest of all that a stage's output depends on: the stage, its version, and what it is given."""
    known = {"stage": ctx.run.stage, "version": ctx.run.stage_version, **inputs}
    return sha256(json.dumps(known, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


class MediaCache:
    """What there is, for one run that needs or makes something."""

    def __init__(self, hf: Holdfast, records: MediaRecords) -> None:
        self._hf, self._records = hf, records

    def provide(self, ctx: Context, inputs: Mapping[str, Any], files: Mapping[str, Write]) -> Product:
        """These files: as they are if they are whole, from another job that had the same input, or made now."""
        key, made = key_of(ctx, inputs), set[str]()
        found = self._records.holder(key)

        def writing(name: str, write: Write) -> Write:
            def to(path: Path) -> None:
                if found is None or not self._copied(found, _named(name, key), path):
                    write(path)
                    made.add(name)

            return to

        kept = {name: ctx.artifact(_named(name, key), writing(name, write)) for name, write in files.items()}
        if made or found != ctx.run.id:
            self._records.note(key, ctx.run, made=bool(made))
        if made:
            ctx.log.info("made %s", ", ".join(sorted(made)))
        parts = {name: Part(ctx.run.id, one.name, one.sha256, one.size) for name, one in kept.items()}
        return Product(parts, {name: _local(one.path) for name, one in kept.items()}, bool(made))

    def fetch(self, ctx: Context, part: Mapping[str, Any], again: Write) -> Path:
        """A file of an earlier stage, checked; one that is damaged or gone is made again here, to the same bytes."""
        wanted = Part(**part)
        try:
            found = self._hf.artifacts.get(wanted.run_id, wanted.name)
            if found.sha256 == wanted.sha256:
                found.open(verify=True).close()
                return _local(found.path)
        except LOST as error:
            ctx.log.warning("%s is lost and made again: %s", wanted.name, error)
        mended = ctx.artifact(f"mended-{wanted.name}", again)
        if mended.sha256 != wanted.sha256:
            raise GiveUp(
                f"{wanted.name} was lost, and what was made for it is not the same", failure_type="NOT_THE_SAME"
            )
        return _local(mended.path)

    def _copied(self, run_id: str, name: str, path: Path) -> bool:
        try:
            with self._hf.artifacts.open(run_id, name, verify=True) as source, open(path, "wb") as copy:
                shutil.copyfileobj(source, copy)
        except LOST:
            return False
        return True


def _named(name: str, key: str) -> str:
    """'film.mp4' of this input: 'film-0a1b2c3d4e5f.mp4'."""
    stem, _, ending = name.partition(".")
    return f"{stem}-{key[:SHOWN]}.{ending}"


def _local(path: Path | None) -> Path:
    assert path is not None, "artifacts are in a folder: `jobs` has seen to it"
    return path
