"""Desk: what a running job's context may ask of its worker."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from holdfast.artifacts import artifacts
from holdfast.engine import Holdfast
from holdfast.jobs import children
from holdfast.pipelines import stages
from holdfast.runs import results, steps
from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import Lease, guard_leases
from holdfast.runs.outcomes import Succeeded
from holdfast.runs.submission import Submission
from holdfast.store import caller_transaction
from holdfast.store.group_commit import GroupCommit
from holdfast.store.isolation import require_latest
from holdfast.store.transaction import Transaction
from holdfast.support.errors import LeaseLost, StoreBusy, StoreUnavailable
from holdfast.values.artifacts import Artifact
from holdfast.values.runs import Result, Step
from holdfast.worker.event_buffer import EventBuffer
from holdfast.worker.in_flight import RunInFlight

T = TypeVar("T")


class RunServices(Protocol):
    """What a context asks of its worker; in an isolated process, of the worker at the other end of a pipe."""

    def now(self) -> datetime: ...
    def fraction(self) -> float: ...
    def stopped(self) -> str | None: ...
    def wait(self, seconds: float) -> None:
        """Sleep, but wake up when the run is told to stop."""
        ...

    def steps(self) -> dict[str, str]: ...
    def results(self, run_ids: Sequence[str]) -> list[Result]:
        """How these runs ended, in this order; those that have not are left out."""
        ...

    def inputs(self, what: str, names: Sequence[str]) -> dict[str, str]:
        """What a pipeline's run is given when it starts, as JSON text by name."""
        ...

    def submit_child(self, submission: Submission, name: str) -> str:
        """The id of the child of that name, be it new or not."""
        ...

    def remember(self, step: Step) -> None: ...
    def forget(self, name: str) -> bool:
        """Whether there was such a step; LeaseLost if the run is not ours."""
        ...

    def tell(self, kind: str, data: dict[str, Any], *, at: datetime | None = None) -> None:
        """Something to be read later; it happens now if nothing else is said."""
        ...

    def recall(self, name: str) -> Artifact | None:
        """The artifact, if it is there and as it was written."""
        ...

    def scratch(self) -> tuple[str, Path]:
        """A part of its own, and where to write it."""
        ...

    def keep(self, name: str, content: bytes | Path, *, part: str | None = None) -> Artifact: ...
    def finish(self, result: str, connection: Any) -> None:
        """Write that the run has succeeded, on the caller's connection; LeaseLost if it is not ours."""
        ...


Remembered: TypeAlias = tuple[Lease, Step, Iterator[int]]


class StepWriter:
    """Steps of many runs, remembered in one commit; each through its own fence."""

    def __init__(self, hf: Holdfast, holder: str) -> None:
        self._hf, self._holder = hf, holder
        self._gather: GroupCommit[Remembered, None] = GroupCommit(self._write)

    def remember(self, lease: Lease, step: Step, numbers: Iterator[int]) -> None:
        """Keep a step; it is numbered here, where one batch is written after the other."""
        self._gather.do((lease, step, numbers))

    def _write(self, asked: Sequence[Remembered]) -> Sequence[Exception | None]:
        batch = [(lease, replace(step, number=next(numbers))) for lease, step, numbers in asked]

        def write(tx: Transaction) -> list[Exception | None]:
            ours = guard_leases(
                tx, {(lease.run_id, lease.attempt): lease for lease, _ in batch}.values(), holder=self._holder
            )
            steps.insert(tx, [(lease.run_id, step) for lease, step in batch if (lease.run_id, lease.attempt) in ours])
            return [
                None
                if (lease.run_id, lease.attempt) in ours
                else LeaseLost(f"run {lease.run_id}: step not kept, lease lost")
                for lease, _ in batch
            ]

        try:
            return self._hf.do(write)
        except StoreBusy as error:
            return [error] * len(batch)  # each waits for itself; to split the batch would only take longer


class LocalRunServices:
    """The desk of one run in this process. A locked database is waited for as long as the run may go on."""

    def __init__(self, hf: Holdfast, running: RunInFlight, chronicle: EventBuffer, writer: StepWriter) -> None:
        self._hf, self._running, self._chronicle, self._writer = hf, running, chronicle, writer
        self._told: threading.Event | None = None
        self._numbers = itertools.count(1)

    def interrupted(self) -> None:
        if self._told is not None:
            self._told.set()

    def now(self) -> datetime:
        return self._hf.clock.now()

    def fraction(self) -> float:
        return self._hf.ids.fraction()

    def stopped(self) -> str | None:
        if self._running.stopped is None and self._running.ended:
            return "lost"
        return self._running.stopped

    def wait(self, seconds: float) -> None:
        # Made when first needed: most runs never wait, and an Event costs more than starting them.
        self._told = self._told or threading.Event()
        if self._running.stopped is None:
            self._told.wait(seconds)

    def steps(self) -> dict[str, str]:
        return {step.name: step.result for step in self.read(lambda tx: steps.of(tx, self._running.lease.run_id))}

    def results(self, run_ids: Sequence[str]) -> list[Result]:
        return self.read(lambda tx: results.of(tx, run_ids))

    def inputs(self, what: str, names: Sequence[str]) -> dict[str, str]:
        # The work has not begun: a database that is away is no fault of it, either.
        return self._waiting(
            lambda: self._hf.read(lambda tx: stages.answer(tx, self._running.claim, what, names=names)),
            or_away=True,
        )

    def submit_child(self, submission: Submission, name: str) -> str:
        return self.do(lambda tx: children.submit(tx, self._running.lease, submission, name=name))

    def remember(self, step: Step) -> None:
        self._waiting(lambda: self._writer.remember(self._running.lease, step, self._numbers))

    def forget(self, name: str) -> bool:
        return self.do(lambda tx: steps.forget(tx, self._running.lease, name))

    def tell(self, kind: str, data: dict[str, Any], *, at: datetime | None = None) -> None:
        data = self._hf.redactor.data(data)
        self._chronicle.tell(self._running.lease, kind, data, at=at or self._hf.clock.now())

    def finish(self, result: str, connection: Any) -> None:
        lease = self._running.lease
        self._running.finishing = True

        def write(tx: Transaction) -> None:
            # Our own threads renew the lease and write events meanwhile: a snapshot may lack both.
            require_latest(tx, "to finish a run")
            if finish_runs(tx, [(lease, Succeeded(result))], holder=lease.holder):
                raise LeaseLost(f"run {lease.run_id}: attempt {lease.attempt} no longer holds its lease")
            self._chronicle.write_last(tx, lease)

        while True:
            try:
                return caller_transaction.within(self._hf.store, connection, write)
            except StoreBusy:
                # In a transaction that is open, what was read may be outdated by the time the lock is free.
                if caller_transaction.in_transaction(connection) or self.stopped() is not None:
                    raise
                self.wait(self._hf.settings.tick.total_seconds())

    def recall(self, name: str) -> Artifact | None:
        return artifacts.recall(self, self._hf.depot, self._running.claim, name)

    def scratch(self) -> tuple[str, Path]:
        return artifacts.scratch(self._hf.depot, self._running.lease)

    def keep(self, name: str, content: bytes | Path, *, part: str | None = None) -> Artifact:
        hf, limit = self._hf, self._hf.settings.max_artifact_bytes
        return artifacts.keep(self, hf.depot, self._running.claim, name, content, part=part, max_bytes=limit)

    def do(self, verb: Callable[[Transaction], T]) -> T:
        """Write in a transaction of its own."""
        return self._waiting(lambda: self._hf.do(verb))

    def read(self, verb: Callable[[Transaction], T]) -> T:
        """Read in a transaction of its own."""
        return self._waiting(lambda: self._hf.read(verb))

    def _waiting(self, ask: Callable[[], T], *, or_away: bool = False) -> T:
        """Ask until the database is no longer locked (or away), or the run is told to stop."""
        while True:
            try:
                return ask()
            except (StoreBusy, StoreUnavailable) as error:
                waits = or_away or isinstance(error, StoreBusy)
                if not waits or self.stopped() is not None:
                    raise
                self.wait(self._hf.settings.tick.total_seconds())
