"""Run services: what the context of a running job uses to reach its worker."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from holdfast.artifacts import artifacts
from holdfast.artifacts.backends.base import ArtifactStore
from holdfast.artifacts.create import Maker
from holdfast.jobs import children
from holdfast.pipelines import stages
from holdfast.pipelines.plan import renumber
from holdfast.runs import steps
from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import Lease, guard_leases
from holdfast.runs.outcomes import Succeeded
from holdfast.runs.snapshot import find_results
from holdfast.runs.submission import Submission
from holdfast.runtime import Runtime
from holdfast.store import caller_transaction
from holdfast.store.group_commit import GroupCommit
from holdfast.store.transaction import Transaction
from holdfast.support.errors import LeaseLost, StoreBusy, StoreUnavailable
from holdfast.values.artifacts import Artifact
from holdfast.values.runs import Result, Step
from holdfast.worker.event_buffer import EventBuffer
from holdfast.worker.in_flight import RunInFlight

T = TypeVar("T")


class RunServices(Maker, Protocol):
    """The worker's services for one run; in an isolated process they go through a socket."""

    def now(self) -> datetime: ...
    def fraction(self) -> float: ...
    def stopped(self) -> str | None: ...
    def wait(self, seconds: float) -> None:
        """Sleep, but return early if the run is stopped."""
        ...

    def steps(self) -> dict[str, str]: ...
    def results(self, run_ids: Sequence[str]) -> list[Result]:
        """Return the results of these runs, in this order, without runs that have not ended."""
        ...

    def inputs(self, what: str, names: Sequence[str]) -> dict[str, str]:
        """Return the inputs of a pipeline's run as JSON text by name."""
        ...

    def submit_child(self, submission: Submission, name: str) -> str:
        """Return the id of the child of that name; submit it if there is none yet."""
        ...

    def remember(self, step: Step) -> None: ...
    def forget(self, name: str) -> bool:
        """Delete a stored step; False if there is none. Raise LeaseLost if the lease is lost."""
        ...

    def record_event(self, kind: str, data: dict[str, Any], *, at: datetime | None = None) -> None:
        """Record an event of the run, with the time `at` or now."""
        ...

    def finish(self, result: str, connection: Any) -> None:
        """Finish the run as succeeded, on the caller's connection. Raise LeaseLost if the lease is lost."""
        ...


StepToStore: TypeAlias = tuple[Lease, Step, Iterator[int]]


class StepWriter:
    """Stores the steps of many runs in one commit, each only if its run's lease is still ours."""

    def __init__(self, runtime: Runtime, holder: str) -> None:
        self._runtime, self._holder = runtime, holder
        self._group_commit: GroupCommit[StepToStore, None] = GroupCommit(self._write)

    def remember(self, lease: Lease, step: Step, numbers: Iterator[int]) -> None:
        """Store a step. Steps are numbered in the order in which they are written."""
        self._group_commit.do((lease, step, numbers))

    def _write(self, items: Sequence[StepToStore]) -> Sequence[Exception | None]:
        batch = [(lease, replace(step, number=next(numbers))) for lease, step, numbers in items]

        def write(tx: Transaction) -> list[Exception | None]:
            ours = guard_leases(
                tx, {(lease.run_id, lease.claim): lease for lease, _ in batch}.values(), holder=self._holder
            )
            steps.insert(tx, [(lease.run_id, step) for lease, step in batch if (lease.run_id, lease.claim) in ours])
            return [
                None
                if (lease.run_id, lease.claim) in ours
                else LeaseLost(f"run {lease.run_id}: the step was not stored because the lease is lost")
                for lease, _ in batch
            ]

        try:
            return self._runtime.do(write)
        except StoreBusy as error:
            return [error] * len(batch)  # each caller retries by itself; splitting the batch would only take longer


class LocalRunServices:
    """The services of one run in this process. They wait for a locked database until the run is stopped."""

    def __init__(
        self,
        runtime: Runtime,
        running: RunInFlight,
        event_buffer: EventBuffer,
        writer: StepWriter,
        artifact_store: Callable[[], ArtifactStore],
    ) -> None:
        self._runtime, self._running, self._event_buffer, self._writer = runtime, running, event_buffer, writer
        self._artifact_store = artifact_store
        self._interrupted: threading.Event | None = None
        self._numbers = itertools.count(1)

    def interrupted(self) -> None:
        """Wake a `wait`, because the run is stopped."""
        if self._interrupted is not None:
            self._interrupted.set()

    def now(self) -> datetime:
        return self._runtime.clock.now()

    def fraction(self) -> float:
        return self._runtime.ids.fraction()

    def stopped(self) -> str | None:
        if self._running.stopped is None and self._running.ended:
            return "lost"
        return self._running.stopped

    def wait(self, seconds: float) -> None:
        # Created on first use: most runs never wait, and creating an Event costs more than starting a run.
        self._interrupted = self._interrupted or threading.Event()
        if self._running.stopped is None:
            self._interrupted.wait(seconds)

    def steps(self) -> dict[str, str]:
        return {step.name: step.result for step in self.read(lambda tx: steps.of(tx, self._running.lease.run_id))}

    def results(self, run_ids: Sequence[str]) -> list[Result]:
        return self.read(lambda tx: find_results(tx, run_ids))

    def inputs(self, what: str, names: Sequence[str]) -> dict[str, str]:
        # The function has not started, so neither a locked nor an unreachable database may fail the run.
        return self._retrying(
            lambda: self._runtime.read(lambda tx: stages.answer(tx, self._running.claimed, what, names=names)),
            if_unavailable=True,
        )

    def submit_child(self, submission: Submission, name: str) -> str:
        return self.do(lambda tx: children.submit(tx, self._running.lease, submission, name=name, renumber=renumber))

    def remember(self, step: Step) -> None:
        self._retrying(lambda: self._writer.remember(self._running.lease, step, self._numbers))

    def forget(self, name: str) -> bool:
        return self.do(lambda tx: steps.forget(tx, self._running.lease, name))

    def record_event(self, kind: str, data: dict[str, Any], *, at: datetime | None = None) -> None:
        data = self._runtime.redactor.data(data)
        self._event_buffer.add(self._running.lease, kind, data, at=at or self._runtime.clock.now())

    def finish(self, result: str, connection: Any) -> None:
        lease = self._running.lease
        self._running.finishing = True

        def write(tx: Transaction) -> None:
            # Other threads of this worker renew the lease and write events; an old snapshot would miss both.
            caller_transaction.require_latest(tx, "to finish a run")
            if finish_runs(tx, [(lease, Succeeded(result))], holder=lease.holder):
                raise LeaseLost(f"run {lease.run_id}: claim {lease.claim} has lost its lease")
            self._event_buffer.write_last(tx, lease)

        while True:
            try:
                return caller_transaction.within(self._runtime.store, connection, write)
            except StoreBusy:
                # Don't retry in an open transaction: its earlier reads may be outdated once the lock is free.
                if caller_transaction.in_transaction(connection) or not self._may_wait():
                    raise
                self.wait(self._runtime.settings.poll_interval.total_seconds())

    def recall(self, name: str) -> Artifact | None:
        return artifacts.recall(self, self._artifact_store(), self._running.claimed, name)

    def scratch(self) -> tuple[str, Path]:
        return artifacts.scratch(self._artifact_store(), self._running.lease)

    def keep(self, name: str, content: bytes | Path, *, part: str | None = None) -> Artifact:
        limit, claimed = self._runtime.settings.max_artifact_bytes, self._running.claimed
        return artifacts.keep(self, self._artifact_store(), claimed, name, content, part=part, max_bytes=limit)

    def do(self, verb: Callable[[Transaction], T]) -> T:
        """Write in one transaction."""
        return self._retrying(lambda: self._runtime.do(verb))

    def read(self, verb: Callable[[Transaction], T]) -> T:
        """Read in one transaction."""
        return self._retrying(lambda: self._runtime.read(verb))

    def _retrying(self, call: Callable[[], T], *, if_unavailable: bool = False) -> T:
        """Repeat the call while the database is locked, until the run is stopped.

        With `if_unavailable`, also repeat it while the database can't be reached.
        """
        while True:
            try:
                return call()
            except (StoreBusy, StoreUnavailable) as error:
                may_retry = if_unavailable or isinstance(error, StoreBusy)
                if not may_retry or not self._may_wait():
                    raise
                self.wait(self._runtime.settings.poll_interval.total_seconds())

    def _may_wait(self) -> bool:
        """Whether the run may wait for the database."""
        return self.stopped() is None
