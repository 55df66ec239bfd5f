"""Artifacts: files that runs make, each in a folder that follows from its run, and `hf.artifacts` to read them."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar
from urllib.parse import quote

from holdfast.artifacts.backends.base import ArtifactStore, Measured
from holdfast.runs.claim import Claim
from holdfast.runs.handle import RunLike, id_of
from holdfast.runs.lease import Lease, require_lease
from holdfast.runs.submission import CHILD
from holdfast.runtime import Runtime
from holdfast.store.transaction import Transaction
from holdfast.support import json_text
from holdfast.support.errors import ArtifactCorrupt, ArtifactNotFound, InvalidArguments, RunNotFound, Unreadable
from holdfast.support.validation import check_limit
from holdfast.values.artifacts import Artifact

T = TypeVar("T")


class Artifacts:
    """The files that runs have made."""

    def __init__(self, runtime: Runtime, artifact_store: Callable[[], ArtifactStore]) -> None:
        self._runtime, self._artifact_store = runtime, artifact_store

    def of(self, run: RunLike, *, limit: int | None = None, after: str | None = None) -> list[Artifact]:
        """What a run has made; of a pipeline, what all its stages and segments have.

        All of it, or a page of at most `limit`; `after` is the address of the last one before.
        """
        run_id, most = id_of(run), ALL if limit is None else limit
        check_limit(most)
        return self._runtime.read(lambda tx: of(tx, self._artifact_store(), run_id, after=after, limit=most))

    def get(self, run: RunLike, name: str) -> Artifact:
        """One artifact of a run, or ArtifactNotFound."""
        run_id, artifact_store = id_of(run), self._artifact_store()
        found = self._runtime.read(lambda tx: get(tx, artifact_store, place_of(tx, run_id), name))
        if found is None:
            raise ArtifactNotFound(f"run {run_id} has no artifact {name!r}")
        return found

    def open(self, run: RunLike, name: str, *, verify: bool = False) -> BinaryIO:
        """Its content, to read; with `verify` its checksum is checked first."""
        return self.get(run, name).open(verify=verify)


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
_FOLDER = 80
ALL = 2**31 - 1
_numbers = itertools.count()


class Transactions(Protocol):
    """A store, or what stands for it and waits while it is locked."""

    def do(self, verb: Callable[[Transaction], T]) -> T: ...
    def read(self, verb: Callable[[Transaction], T]) -> T: ...


def keep(
    store: Transactions,
    artifact_store: ArtifactStore,
    claim: Claim,
    name: str,
    content: bytes | Path,
    *,
    part: str | None,
    max_bytes: int,
) -> Artifact:
    """Store a file for a run that is still ours, or raise and leave nothing.

    `part` says that the content was written to `scratch` and is ours to move.
    """
    lease, place = claim.lease, _place_for(store, claim)
    staged = part or part_of(lease)
    checked(name)
    try:
        with io.BytesIO(content) if isinstance(content, bytes) else open(content, "rb") as source:
            measured = Measured(source, name=name, max_bytes=max_bytes)
            if part is not None and isinstance(content, Path):
                artifact_store.take(part, content, measured)
            else:
                artifact_store.stage(staged, measured)

        def record(tx: Transaction) -> Artifact:
            require_lease(tx, lease)
            made = Artifact(
                run_id=lease.run_id,
                place=place,
                name=name,
                attempt=lease.attempt,
                size=measured.size,
                sha256=measured.sha256,
                made_at=tx.now,
            )
            tx.put("delete_artifact", place=place, name=name)
            tx.put("insert_artifact", **asdict(made))
            # Last: what it replaces is there until nothing but the commit can fail.
            artifact_store.publish(staged, made.address)
            return made.at(artifact_store)

        return store.do(record)
    finally:
        artifact_store.discard(staged)


def recall(store: Transactions, artifact_store: ArtifactStore, claim: Claim, name: str) -> Artifact | None:
    """The artifact that is there already and as it was written; it is this run's from now on."""
    checked(name)
    place = _place_for(store, claim)
    found = store.read(lambda tx: get(tx, artifact_store, place, name))
    if found is None:
        return None
    try:
        found.check()
    except (ArtifactNotFound, ArtifactCorrupt):
        return None
    if found.run_id == claim.lease.run_id:
        return found
    # Retention goes by the run that used it last: an output that a newer run relies on stays as long as that does.
    return store.do(lambda tx: _adopt(tx, artifact_store, claim.lease, found))


def _adopt(tx: Transaction, artifact_store: ArtifactStore, lease: Lease, found: Artifact) -> Artifact | None:
    require_lease(tx, lease)
    adopted = tx.run(
        "adopt_artifact",
        place=found.place,
        name=found.name,
        sha256=found.sha256,
        run_id=lease.run_id,
        attempt=lease.attempt,
    )
    return get(tx, artifact_store, found.place, found.name) if adopted else None


def scratch(artifact_store: ArtifactStore, lease: Lease) -> tuple[str, Path]:
    """A part of its own and where to write it."""
    part = part_of(lease)
    return part, artifact_store.scratch(part)


def get(tx: Transaction, artifact_store: ArtifactStore, place: str, name: str) -> Artifact | None:
    row = tx.one("find_artifact", place=place, name=name)
    return None if row is None else Artifact(**row).at(artifact_store)


def of(
    tx: Transaction, artifact_store: ArtifactStore, run_id: str, *, after: str | None = None, limit: int = ALL
) -> list[Artifact]:
    """What a run has made; of a pipeline, what its stages and segments have, and those that it repeats.

    By place and name, what it has made itself first; `after` is the address of the last one before these.
    """
    place = place_of(tx, run_id)
    last = _parted(after) if after is not None else None
    found = within(tx, artifact_store, place, after=last, limit=limit) if last is None or last[0] == place else []
    if place == run_id and len(found) < limit:
        last = last if last is not None and last[0] != place else None
        found += within(tx, artifact_store, root_of(tx, run_id), below=True, after=last, limit=limit - len(found))
    return found


def _parted(address: str) -> tuple[str, str]:
    """Place and name of an address, or InvalidArguments."""
    rest = address.partition("/")[2] if isinstance(address, str) else ""
    place, slash, name = rest.rpartition("/")
    if not slash:
        raise InvalidArguments("after is the address of an artifact: the last one of the page before")
    return place, name


def within(
    tx: Transaction,
    artifact_store: ArtifactStore,
    place: str,
    *,
    below: bool = False,
    after: tuple[str, str] | None = None,
    limit: int = ALL,
) -> list[Artifact]:
    """What lies at a place, or in all the places below it."""
    # Texts that begin with the place and go on sort behind it: '/' is followed by '0', and no place goes on with '!' or
    # less. (Nothing below a blank: SQL Server compares texts as if the shorter one ended in blanks.)
    first, last = (f"{place}/", f"{place}0") if below else (place, f"{place}!")
    first, behind = (first, "") if after is None else (max(first, after[0]), after[1])
    rows = tx.all("find_artifacts", first=first, last=last, behind=behind, limit=limit)
    return [Artifact(**row).at(artifact_store) for row in rows]


def remove(tx: Transaction, artifact_store: ArtifactStore, run_ids: Sequence[str], *, limit: int) -> list[Artifact]:
    """Remove up to so many artifacts of these runs, the files before the rows are committed as gone.

    If the commit fails the rows are still there, and whoever removes them again finds no file and is content.
    """
    if not run_ids:
        return []
    gone = [Artifact(**row) for row in tx.all("delete_artifacts_of", ids=sorted(run_ids), limit=limit)]
    if gone:
        artifact_store.remove([artifact.address for artifact in gone])
    return gone


def sweep(tx: Transaction, artifact_store: ArtifactStore, *, limit: int) -> int:
    """Discard parts whose attempt no longer holds a lease: no one can make an artifact of them."""
    owners = {part: _owner(part) for part in artifact_store.parts(limit)}
    run_ids = sorted({owner[0] for owner in owners.values() if owner is not None})
    held = {(row["run_id"], row["attempt"]) for row in tx.all("find_attempts", ids=run_ids)} if run_ids else set()
    left = [part for part, owner in owners.items() if owner is not None and owner not in held]
    for part in left:
        artifact_store.discard(part)
    return len(left)


def place_of(tx: Transaction, run_id: str) -> str:
    """Where a run's artifacts lie, or RunNotFound."""
    row = tx.one("get_submissions", ids=[run_id])
    if row is None:
        raise RunNotFound(f"there is no run {run_id}")
    return _place(tx, run_id, row["parent_id"], row["stage"], row["segment"], row["args"])


def _place_for(store: Transactions, claim: Claim) -> str:
    run_id = claim.lease.run_id
    if claim.stage is None:
        return run_id
    return store.read(lambda tx: _place(tx, run_id, claim.parent_id, claim.stage, claim.segment, claim.args))


def _place(
    tx: Transaction, run_id: str, parent_id: str | None, stage: str | None, segment: str | None, args: str
) -> str:
    """By the run's id; of a pipeline's stage or segment by the pipeline's, the same for all that repeat it: so a rerun
    finds what was made before, unless the stage has another version now."""
    if parent_id is None or stage is None or stage == CHILD:
        return run_id
    root = root_of(tx, parent_id)
    return f"{root}/{_folder(stage)}@{_folder(_version(args))}/{_folder(segment)}"


def _version(args: str) -> str:
    """The version of a stage; of a run whose arguments can't be decoded none, at which nothing lies."""
    try:
        return str(json_text.mapping(args).get("version", ""))
    except Unreadable:
        return ""


def root_of(tx: Transaction, run_id: str) -> str:
    """The first of the runs that this one repeats; itself, if it repeats none."""
    row = tx.one("find_root", id=run_id)
    return run_id if row is None else str(row["root"])


def checked(name: str) -> str:
    """The name of an artifact, which can't leave its folder."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArguments(
            f"artifact name {name!r}: letters, digits, '_', '-' and '.', at most 120, not first a '.' or '-'"
        )
    return name


def part_of(lease: Lease) -> str:
    """A name that no other part has, and that tells whose it is."""
    return f"{lease.run_id}.{lease.attempt}.{next(_numbers)}"


def _owner(part: str) -> tuple[str, int] | None:
    run_id, _, rest = part.partition(".")
    attempt = rest.partition(".")[0]
    return (run_id, int(attempt)) if len(run_id) == 26 and attempt.isdecimal() else None


def _folder(text: str | None) -> str:
    """One folder's name: whatever is special is spelled out, and what is too long ends in a digest."""
    if not text:
        return "~"  # which no other text becomes
    spelled = quote(text, safe="", errors="surrogatepass").replace("~", "%7E")
    if spelled.startswith("."):
        spelled = f"%2E{spelled[1:]}"
    if len(spelled) > _FOLDER:
        spelled = (
            f"{spelled[: _FOLDER - 20].rstrip('%')}~{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        )
    return spelled
