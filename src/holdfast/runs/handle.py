"""Handles: objects through which code waits for a run, reads it, cancels it or runs it again."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from holdfast.runs.result_waiter import AWAY, FIRST, Answer, Waiter
from holdfast.support import json_text
from holdfast.support.clock import Clock
from holdfast.support.errors import InvalidArguments, ResultTimeout, RunFailed, RunNotFound
from holdfast.support.validation import as_duration

if TYPE_CHECKING:
    from holdfast.values.events import Event
    from holdfast.values.runs import Snapshot, Why

R = TypeVar("R")

LOOK_AT_CLOCK = 1.0  # seconds after which a waiting caller checks whether its timeout has passed


class RunAccess(Protocol):
    """The operations that a handle needs. A Holdfast with its database provides them, and so does an HTTP client."""

    clock: Clock
    waiter: Waiter

    def snapshot(self, run: RunLike) -> Snapshot: ...
    def cancel(self, run: RunLike, *, reason: str = ...) -> str: ...
    def again(self, run: RunLike) -> Run[Any]: ...
    def why(self, run: RunLike) -> Why: ...
    def timeline(self, run: RunLike) -> list[Event]: ...


class Run(Generic[R]):
    """A handle for one run."""

    def __init__(
        self,
        access: RunAccess,
        run_id: str,
        *,
        decode: Callable[[str], R] = json_text.load,
        snapshot: Snapshot | None = None,
    ) -> None:
        self._access, self.id, self._decode, self._snapshot = access, run_id, decode, snapshot

    @property
    def snapshot(self) -> Snapshot:
        """The run as it was last read. The first use reads it."""
        return self._snapshot or self.refresh().snapshot

    @property
    def state(self) -> str:
        """queued, running, succeeded, failed, cancelled or timed_out, as last read."""
        return self.snapshot.state

    def refresh(self) -> Run[R]:
        """Read the run again."""
        with self._explain_missing():
            self._snapshot = self._access.snapshot(self.id)
        return self

    def result(self, timeout: float | timedelta | None = None) -> R:
        """Wait for the run to end and return its result.

        Raise RunFailed if the run did not succeed, or ResultTimeout if it has not ended after `timeout`.
        """
        limit, elapsed, waiter = as_duration(timeout), self._access.clock.elapsed, self._access.waiter
        give_up_at = math.inf if limit is None else elapsed() + limit.total_seconds()
        woken, shared = threading.Event(), False
        with waiter.watch(self.id, lambda _: woken.set(), reads=False) as watch:
            while not self._ended():
                if elapsed() >= give_up_at:
                    raise self._timed_out(limit)
                if shared:
                    waiter.look_soon(watch)
                    while not woken.wait(min(LOOK_AT_CLOCK, max(0.0, give_up_at - elapsed()))):
                        if elapsed() >= give_up_at:
                            break
                else:
                    woken.wait(min(FIRST, max(0.0, give_up_at - elapsed())))  # many runs end that soon
                woken.clear()
                shared = True
        return self._outcome()

    def _ended(self) -> bool:
        """Return whether the run has ended; False while the database or the server is unavailable."""
        try:
            return self.refresh().snapshot.ended
        except AWAY:
            return False

    async def aresult(self, timeout: float | timedelta | None = None) -> R:
        """`result` for async callers. Waiting occupies no thread and can be cancelled safely."""
        import asyncio

        limit, loop = as_duration(timeout), asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def notify(value: Answer) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(set_answer, value)

        def set_answer(value: Answer) -> None:
            if not answer.done():
                answer.set_result(value)

        with self._access.waiter.watch(self.id, notify, reads=True) as watch:
            self._access.waiter.look_now(watch)
            await asyncio.wait([answer], timeout=None if limit is None else limit.total_seconds())
            if not answer.done():
                self._access.waiter.look_now(watch, last=True)
            snapshot = await answer
        with self._explain_missing():
            if isinstance(snapshot, Exception):
                raise snapshot
        self._snapshot = snapshot or self._snapshot
        if snapshot is None or not snapshot.ended:
            raise self._timed_out(limit)
        return self._outcome()

    def _timed_out(self, limit: timedelta | None) -> ResultTimeout:
        if self._snapshot is None:
            return ResultTimeout(f"run {self.id} could not be read within {limit}")
        return ResultTimeout(f"run {self.id} is still {self._snapshot.state} after {limit}")

    def cancel(self, *, reason: str = "cancelled") -> str:
        """End the run if it is queued, or ask it to stop if it is running; return its state afterwards."""
        with self._explain_missing():
            return self._access.cancel(self.id, reason=reason)

    def again(self) -> Run[R]:
        """Submit a new run with the same job, arguments and policy; this run stays as it is."""
        with self._explain_missing():
            return self._access.again(self.id)

    def why(self) -> Why:
        """Explain the state of the run and what it waits for."""
        with self._explain_missing():
            return self._access.why(self.id)

    def timeline(self) -> list[Event]:
        """Return all events of the run, in order."""
        with self._explain_missing():
            return self._access.timeline(self.id)

    @contextlib.contextmanager
    def _explain_missing(self) -> Iterator[None]:
        """Add the likely cause to RunNotFound if the run was submitted through this handle and never read."""
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
        return self._decode(snapshot.result)

    def __repr__(self) -> str:
        return f"<Run {self.id}>"


RunLike: TypeAlias = "Run[Any] | Snapshot | str"
"""A run: its handle, its snapshot or its id."""


def id_of(run: RunLike) -> str:
    """Return the id of a run given as a handle, a snapshot or an id."""
    if isinstance(run, Run):
        return run.id
    from holdfast.values.runs import Snapshot

    run_id = run.id if isinstance(run, Snapshot) else run
    if not isinstance(run_id, str) or not run_id or not json_text.storable(run_id):
        raise InvalidArguments(f"expected a run or its id, not {run!r}")
    return run_id
