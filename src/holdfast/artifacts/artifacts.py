"""Artifacts: files that runs publish, each in the folder of its run, and the namespace `hf.artifacts`."""

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
from holdfast.runs.claim import ClaimedRun
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
    """The artifacts of one Holdfast."""

    def __init__(self, runtime: Runtime, artifact_store: Callable[[], ArtifactStore]) -> None:
        self._runtime, self._artifact_store = runtime, artifact_store

    def of(self, run: RunLike, *, limit: int | None = None, after: str | None = None) -> list[Artifact]:
        """Return the artifacts of a run; for a pipeline, also those of its stages and segments.

        `limit` limits the page; `after` is the address of the last artifact of the previous page.
        """
        run_id, most = id_of(run), ALL if limit is None else limit
        check_limit(most)
        return self._runtime.read(lambda tx: of(tx, self._artifact_store(), run_id, after=after, limit=most))

    def get(self, run: RunLike, name: str) -> Artifact:
        """Return one artifact of a run, or raise ArtifactNotFound."""
        run_id, artifact_store = id_of(run), self._artifact_store()
        found = self._runtime.read(lambda tx: get(tx, artifact_store, folder_of(tx, run_id), name))
        if found is None:
            raise ArtifactNotFound(f"run {run_id} has no artifact {name!r}")
        return found

    def open(self, run: RunLike, name: str, *, verify: bool = False) -> BinaryIO:
        """Open an artifact for reading; `verify` checks its checksum first."""
        return self.get(run, name).open(verify=verify)


_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
_FOLDER = 80
ALL = 2**31 - 1
_numbers = itertools.count()


class Transactions(Protocol):
    """A store, or a wrapper that waits while the store is locked."""

    def do(self, verb: Callable[[Transaction], T]) -> T: ...
    def read(self, verb: Callable[[Transaction], T]) -> T: ...


def keep(
    store: Transactions,
    artifact_store: ArtifactStore,
    claimed: ClaimedRun,
    name: str,
    content: bytes | Path,
    *,
    part: str | None,
    max_bytes: int,
) -> Artifact:
    """Publish a file of a run whose lease we hold, or raise and leave nothing behind.

    If `part` is given, the content is the file at the `scratch` path of that part, and may be moved.
    """
    lease, folder = claimed.lease, _folder_for(store, claimed)
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
                folder=folder,
                name=name,
                claim=lease.claim,
                size=measured.size,
                sha256=measured.sha256,
                created_at=tx.now,
            )
            tx.put("delete_artifact", folder=folder, name=name)
            tx.put("insert_artifact", **asdict(made))
            # Publish last: this replaces the existing file, and after it only the commit can fail.
            artifact_store.publish(staged, made.address)
            return made.at(artifact_store)

        return store.do(record)
    finally:
        artifact_store.discard(staged)


def recall(store: Transactions, artifact_store: ArtifactStore, claimed: ClaimedRun, name: str) -> Artifact | None:
    """Return the existing artifact if its file is intact, and make this run its owner."""
    checked(name)
    folder = _folder_for(store, claimed)
    found = store.read(lambda tx: get(tx, artifact_store, folder, name))
    if found is None:
        return None
    try:
        found.check()
    except (ArtifactNotFound, ArtifactCorrupt):
        return None
    if found.run_id == claimed.lease.run_id:
        return found
    # Retention follows the owner, so an artifact that a newer run uses is kept as long as that run.
    return store.do(lambda tx: _adopt(tx, artifact_store, claimed.lease, found))


def _adopt(tx: Transaction, artifact_store: ArtifactStore, lease: Lease, found: Artifact) -> Artifact | None:
    require_lease(tx, lease)
    adopted = tx.run(
        "adopt_artifact",
        folder=found.folder,
        name=found.name,
        sha256=found.sha256,
        run_id=lease.run_id,
        claim=lease.claim,
    )
    return get(tx, artifact_store, found.folder, found.name) if adopted else None


def scratch(artifact_store: ArtifactStore, lease: Lease) -> tuple[str, Path]:
    """Return the name of a new part and the path to write it to."""
    part = part_of(lease)
    return part, artifact_store.scratch(part)


def get(tx: Transaction, artifact_store: ArtifactStore, folder: str, name: str) -> Artifact | None:
    row = tx.one("find_artifact", folder=folder, name=name)
    return None if row is None else Artifact(**row).at(artifact_store)


def of(
    tx: Transaction, artifact_store: ArtifactStore, run_id: str, *, after: str | None = None, limit: int = ALL
) -> list[Artifact]:
    """Return the artifacts of a run; for a pipeline, also those of its stages and segments and of its reruns.

    The run's own artifacts come first, then the others by folder and name. `after` is the address of the last artifact
    of the previous page.
    """
    folder = folder_of(tx, run_id)
    last = _split_address(after) if after is not None else None
    found = within(tx, artifact_store, folder, after=last, limit=limit) if last is None or last[0] == folder else []
    if folder == run_id and len(found) < limit:
        last = last if last is not None and last[0] != folder else None
        found += within(tx, artifact_store, root_of(tx, run_id), below=True, after=last, limit=limit - len(found))
    return found


def _split_address(address: str) -> tuple[str, str]:
    """Split an address into folder and name, or raise InvalidArguments."""
    rest = address.partition("/")[2] if isinstance(address, str) else ""
    folder, slash, name = rest.rpartition("/")
    if not slash:
        raise InvalidArguments("after must be the address of the last artifact of the previous page")
    return folder, name


def within(
    tx: Transaction,
    artifact_store: ArtifactStore,
    folder: str,
    *,
    below: bool = False,
    after: tuple[str, str] | None = None,
    limit: int = ALL,
) -> list[Artifact]:
    """Return the artifacts in a folder, or in all folders below it."""
    # Select a range of texts. Folders below `folder` begin with "folder/" and sort before "folder0", because '0' is the
    # character after '/'. No other folder sorts between "folder" and "folder!". The upper bound ends in "!", which
    # sorts after a space, because SQL Server pads the shorter text with spaces when it compares.
    first, last = (f"{folder}/", f"{folder}0") if below else (folder, f"{folder}!")
    first, behind = (first, "") if after is None else (max(first, after[0]), after[1])
    rows = tx.all("find_artifacts", first=first, last=last, behind=behind, limit=limit)
    return [Artifact(**row).at(artifact_store) for row in rows]


def remove(tx: Transaction, artifact_store: ArtifactStore, run_ids: Sequence[str], *, limit: int) -> list[Artifact]:
    """Delete up to `limit` artifacts of these runs: the files first, then the rows with the commit.

    If the commit fails, the rows remain, and the next call deletes them; a missing file is no error.
    """
    if not run_ids:
        return []
    deleted = [Artifact(**row) for row in tx.all("delete_artifacts_of", ids=sorted(run_ids), limit=limit)]
    if deleted:
        artifact_store.remove([artifact.address for artifact in deleted])
    return deleted


def sweep(tx: Transaction, artifact_store: ArtifactStore, *, limit: int) -> int:
    """Discard parts whose claim no longer has a lease, because they can't be published any more."""
    owners = {part: _owner(part) for part in artifact_store.parts(limit)}
    run_ids = sorted({owner[0] for owner in owners.values() if owner is not None})
    held = {(row["run_id"], row["claim"]) for row in tx.all("find_claims", ids=run_ids)} if run_ids else set()
    abandoned = [part for part, owner in owners.items() if owner is not None and owner not in held]
    for part in abandoned:
        artifact_store.discard(part)
    return len(abandoned)


def folder_of(tx: Transaction, run_id: str) -> str:
    """Return the folder of a run's artifacts, or raise RunNotFound."""
    row = tx.one("get_submissions", ids=[run_id])
    if row is None:
        raise RunNotFound(f"there is no run {run_id}")
    return _folder(tx, run_id, row["parent_id"], row["stage"], row["segment"], row["args"])


def _folder_for(store: Transactions, claimed: ClaimedRun) -> str:
    run_id = claimed.lease.run_id
    if claimed.stage is None:
        return run_id
    return store.read(lambda tx: _folder(tx, run_id, claimed.parent_id, claimed.stage, claimed.segment, claimed.args))


def _folder(
    tx: Transaction, run_id: str, parent_id: str | None, stage: str | None, segment: str | None, args: str
) -> str:
    """Return the folder of a run: its id or, for a stage or segment, a folder below that of its pipeline.

    A pipeline and its reruns share a folder, so that a rerun finds earlier artifacts, unless the version of the stage
    has changed.
    """
    if parent_id is None or stage is None or stage == CHILD:
        return run_id
    root = root_of(tx, parent_id)
    return f"{root}/{_folder_name(stage)}@{_folder_name(_version(args))}/{_folder_name(segment)}"


def _version(args: str) -> str:
    """Return the version of a stage, or "" if its arguments can't be decoded. No stage has an empty version."""
    try:
        return str(json_text.mapping(args).get("version", ""))
    except Unreadable:
        return ""


def root_of(tx: Transaction, run_id: str) -> str:
    """Return the first run of a chain of reruns: the run itself if it is not a rerun."""
    row = tx.one("find_root", id=run_id)
    return run_id if row is None else str(row["root"])


def checked(name: str) -> str:
    """Return the name if it is valid, so that it can't lead out of its folder, or raise InvalidArguments."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArguments(
            f"invalid artifact name {name!r}; use up to 120 letters, digits, '_', '-' and '.', and don't begin "
            "with '.' or '-'"
        )
    return name


def part_of(lease: Lease) -> str:
    """Return a unique name for a new part; it contains the run id and the claim."""
    return f"{lease.run_id}.{lease.claim}.{next(_numbers)}"


def _owner(part: str) -> tuple[str, int] | None:
    run_id, _, rest = part.partition(".")
    claim = rest.partition(".")[0]
    return (run_id, int(claim)) if len(run_id) == 26 and claim.isdecimal() else None


def _folder_name(text: str | None) -> str:
    """Return a text as a folder name: special characters are quoted, and a long name ends in a digest."""
    if not text:
        return "~"  # no other text is quoted as "~"
    quoted = quote(text, safe="", errors="surrogatepass").replace("~", "%7E")
    if quoted.startswith("."):
        quoted = f"%2E{quoted[1:]}"
    if len(quoted) > _FOLDER:
        quoted = (
            f"{quoted[: _FOLDER - 20].rstrip('%')}~{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        )
    return quoted
