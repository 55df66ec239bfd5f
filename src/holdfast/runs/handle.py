"""Handles: a run as whoever submitted it sees it; to wait for, to ask, to steer."""

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

LOOK_AT_CLOCK = 1.0  # seconds after which a caller that waits looks whether its time is over


class RunAccess(Protocol):
    """What a handle needs: a Holdfast on its database, or a client of one over HTTP."""

    clock: Clock
    waiter: Waiter

    def snapshot(self, run: RunLike) -> Snapshot: ...
    def cancel(self, run: RunLike, *, reason: str = ...) -> str: ...
    def again(self, run: RunLike) -> Run[Any]: ...
    def why(self, run: RunLike) -> Why: ...
    def story(self, run: RunLike) -> list[Event]: ...


class Run(Generic[R]):
    """A handle on one run."""

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
        """The run as last read."""
        return self._snapshot or self.refresh().snapshot

    @property
    def state(self) -> str:
        """queued, running, succeeded, failed, cancelled or timed_out, as last read."""
        return self.snapshot.state

    def refresh(self) -> Run[R]:
        """Read the run anew."""
        with self._told():
            self._snapshot = self._access.snapshot(self.id)
        return self

    def result(self, timeout: float | timedelta | None = None) -> R:
        """Wait for the run to end and give its result; RunFailed if it has none, ResultTimeout if it takes too long."""
        limit, elapsed, waiter = as_duration(timeout), self._access.clock.elapsed, self._access.waiter
        give_up_at = math.inf if limit is None else elapsed() + limit.total_seconds()
        bell, shared = threading.Event(), False
        with waiter.watch(self.id, lambda _: bell.set(), reads=False) as watch:
            while not self._ended():
                if elapsed() >= give_up_at:
                    raise self._timed_out(limit)
                if shared:
                    waiter.look_soon(watch)
                    while not bell.wait(min(LOOK_AT_CLOCK, max(0.0, give_up_at - elapsed()))):
                        if elapsed() >= give_up_at:
                            break
                else:
                    bell.wait(min(FIRST, max(0.0, give_up_at - elapsed())))  # many runs end that soon
                bell.clear()
                shared = True
        return self._outcome()

    def _ended(self) -> bool:
        """Whether it has ended. A database or a server that is away is waited for."""
        try:
            return self.refresh().snapshot.ended
        except AWAY:
            return False

    async def aresult(self, timeout: float | timedelta | None = None) -> R:
        """`result` for async callers. Waiting takes no thread, and cancelling it leaves nothing behind."""
        import asyncio

        limit, loop = as_duration(timeout), asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()

        def tell(found: Answer) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, found)

        def settle(found: Answer) -> None:
            if not answer.done():
                answer.set_result(found)

        with self._access.waiter.watch(self.id, tell, reads=True) as watch:
            self._access.waiter.look_now(watch)
            await asyncio.wait([answer], timeout=None if limit is None else limit.total_seconds())
            if not answer.done():
                self._access.waiter.look_now(watch, last=True)
            found = await answer
        with self._told():
            if isinstance(found, Exception):
                raise found
        self._snapshot = found or self._snapshot
        if found is None or not found.ended:
            raise self._timed_out(limit)
        return self._outcome()

    def _timed_out(self, limit: timedelta | None) -> ResultTimeout:
        state = self._snapshot.state if self._snapshot is not None else "not to be seen"
        return ResultTimeout(f"run {self.id} is still {state} after {limit}")

    def cancel(self, *, reason: str = "cancelled") -> str:
        """End it if it has not started; ask it to stop if it runs. Its state afterwards."""
        with self._told():
            return self._access.cancel(self.id, reason=reason)

    def again(self) -> Run[R]:
        """A new run of the same job with the same arguments; this one stays as it is."""
        with self._told():
            return self._access.again(self.id)

    def why(self) -> Why:
        """Where it stands, and what it waits for."""
        with self._told():
            return self._access.why(self.id)

    def story(self) -> list[Event]:
        """Everything that happened to it, in order."""
        with self._told():
            return self._access.story(self.id)

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
        return self._decode(snapshot.result)

    def __repr__(self) -> str:
        return f"<Run {self.id}>"


RunLike: TypeAlias = "Run[Any] | Snapshot | str"
"""A run: by its handle, as it was read, or by its id."""


def id_of(run: RunLike) -> str:
    """The id of a run that is named by its handle, by what was read of it, or by its id."""
    if isinstance(run, Run):
        return run.id
    from holdfast.values.runs import Snapshot

    run_id = run.id if isinstance(run, Snapshot) else run
    if not isinstance(run_id, str) or not run_id or not json_text.storable(run_id):
        raise InvalidArguments(f"give a run or its id, not {run!r}")
    return run_id
