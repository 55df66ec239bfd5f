"""Handles: a run as whoever submitted it sees it; to wait for, to ask, to steer."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from holdfast import codec
from holdfast.errors import InvalidArguments, ResultTimeout, RunFailed, RunNotFound, ServerUnavailable, StoreUnavailable
from holdfast.events import Event
from holdfast.jobs import Job
from holdfast.options import as_duration
from holdfast.reasons import Why
from holdfast.runs import Snapshot

if TYPE_CHECKING:
    from holdfast.engine import Holdfast

R = TypeVar("R")


class Run(Generic[R]):
    """A handle on one run."""

    def __init__(self, hf: Holdfast, run_id: str, job: Job[..., R] | None, snapshot: Snapshot | None) -> None:
        self._hf, self.id, self._job, self._snapshot = hf, run_id, job, snapshot

    @property
    def snapshot(self) -> Snapshot:
        """The run as last read."""
        return self._snapshot or self.refresh().snapshot

    @property
    def state(self) -> str:
        """queued, running, succeeded, failed, cancelled or timed_out, as last read."""
        return self.snapshot.state

    def refresh(self) -> Run[R]:
        """Read the run anew."""
        with self._told():
            self._snapshot = self._hf.snapshot(self.id)
        return self

    def result(self, timeout: float | timedelta | None = None) -> R:
        """Wait for the run to end and give its result; RunFailed if it has none, ResultTimeout if it takes too long."""
        limit = as_duration(timeout)
        bell = threading.Event()
        leave = self._hf.wakeups.listen(lambda rung, ended: bell.set() if self.id in ended else None)
        started = self._hf.clock.elapsed()
        try:
            pause = 0.01
            while not self._ended():
                left = None if limit is None else limit.total_seconds() - (self._hf.clock.elapsed() - started)
                if left is not None and left <= 0:
                    state = self._snapshot.state if self._snapshot is not None else "not to be seen"
                    raise ResultTimeout(f"run {self.id} is still {state} after {limit}")
                bell.wait(pause if left is None else min(pause, left))
                pause = min(pause * 1.5, 0.25)
        finally:
            leave()
        return self._outcome()

    def _ended(self) -> bool:
        """Whether it has ended, as far as the database, or the server, can be asked: one that is away is waited for."""
        try:
            return self.refresh().snapshot.ended
        except (StoreUnavailable, ServerUnavailable):
            return False

    async def aresult(self, timeout: float | timedelta | None = None) -> R:
        """`result` for async callers."""
        return await asyncio.to_thread(self.result, timeout)

    def cancel(self, *, reason: str = "cancelled") -> str:
        """End it if it has not started; ask it to stop if it runs. Its state afterwards."""
        with self._told():
            return self._hf.cancel(self.id, reason=reason)

    def again(self) -> Run[R]:
        """A new run of the same job with the same arguments; this one stays as it is."""
        with self._told():
            return self._hf.again(self.id)

    def why(self) -> Why:
        """Where it stands, and what it waits for."""
        with self._told():
            return self._hf.why(self.id)

    def story(self) -> list[Event]:
        """Everything that happened to it, in order."""
        with self._told():
            return self._hf.story(self.id)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Say what it means that a run which was submitted, and never read, is not there."""
        try:
            yield
        except RunNotFound as error:
            if self._snapshot is not None:
                raise
            raise RunNotFound(f"{error} (its transaction is not committed, or was rolled back)") from None

    def _outcome(self) -> R:
        snapshot = self.snapshot
        if snapshot.state != "succeeded" or snapshot.result is None:
            raise RunFailed(self.id, snapshot.state, snapshot.failure_type, snapshot.error)
        if self._job is not None:
            return self._job.arguments.decode_result(snapshot.result)  # type: ignore[no-any-return]
        return codec.load(snapshot.result)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"<Run {self.id}>"


RunLike: TypeAlias = Run[Any] | Snapshot | str
"""A run: by its handle, as it was read, or by its id."""


def id_of(run: RunLike) -> str:
    """The id of a run that is named by its handle, by what was read of it, or by its id."""
    run_id = run.id if isinstance(run, Run | Snapshot) else run
    if not isinstance(run_id, str) or not run_id or not codec.storable(run_id):
        raise InvalidArguments(f"give a run or its id, not {run!r}")
    return run_id
