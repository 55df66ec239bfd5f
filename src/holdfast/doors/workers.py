"""hf.workers: who is alive, what they do now, and how one is asked to end."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from holdfast import operations, workers
from holdfast.options import check_limit
from holdfast.store.transaction import Transaction
from holdfast.workers import Task, WorkerInfo

if TYPE_CHECKING:
    from holdfast.engine import Holdfast


class Workers:
    """The live workers of one Holdfast, in whatever process."""

    def __init__(self, hf: Holdfast) -> None:
        self._hf = hf

    def list(self) -> builtins.list[WorkerInfo]:
        """Every worker that has been heard within its lease, the longest alive first."""
        return self._hf.read(workers.live)

    def get(self, worker_id: str) -> WorkerInfo:
        """One live worker, or WorkerNotFound."""
        return self._hf.read(lambda tx: workers.get(tx, worker_id))

    def tasks(self, *, limit: int = 1000) -> builtins.list[Task]:
        """What runs now, worker by worker."""
        check_limit(limit)
        return self._hf.read(lambda tx: workers.tasks(tx, limit=limit))

    def drain(self, worker_id: str, *, by: str | None = None) -> WorkerInfo:
        """Ask a live worker to claim no more, finish what it has, and end; WorkerNotFound if it is not alive."""

        def drain(tx: Transaction) -> WorkerInfo:
            worker = workers.drain(tx, worker_id)
            operations.record(tx, by, "drain", worker=worker_id)
            return worker

        return self._hf.do(drain)
