"""hf.artifacts: what runs have made, for whoever wants to read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from holdfast import artifacts
from holdfast.depots.base import Artifact
from holdfast.errors import ArtifactNotFound
from holdfast.handles import RunLike, id_of
from holdfast.options import check_limit

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Artifacts:
    """The files that runs have made."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf

    def of(self, run: RunLike, *, limit: int | None = None, after: str | None = None) -> list[Artifact]:
        """What a run has made; of a pipeline, what all its stages and segments have.

        All of it, or a page of at most `limit`; `after` is the address of the last one before.
        """
        run_id, most = id_of(run), artifacts.ALL if limit is None else limit
        check_limit(most)
        return self._hf.read(lambda tx: artifacts.of(tx, self._hf.depot, run_id, after=after, limit=most))

    def get(self, run: RunLike, name: str) -> Artifact:
        """One artifact of a run, or ArtifactNotFound."""
        hf, run_id = self._hf, id_of(run)
        found = hf.read(lambda tx: artifacts.get(tx, hf.depot, artifacts.place_of(tx, run_id), name))
        if found is None:
            raise ArtifactNotFound(f"run {run_id} has no artifact {name!r}")
        return found

    def open(self, run: RunLike, name: str, *, verify: bool = False) -> BinaryIO:
        """Its content, to read; with `verify` its checksum is checked first."""
        return self.get(run, name).open(verify=verify)
