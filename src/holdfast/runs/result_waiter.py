"""Result waiters: calls of `result` and `aresult` that wait for runs to end. One thread looks for all of them.

    a commit of this process ends the run ──▶ a sync caller reads it at once; for async ones the thread reads it
    a process elsewhere ends the run ───────▶ the thread finds it: one look for all runs that are due to be looked at

A run is looked at often at first and less often later. Looks fall on common instants, so that many runs share one.
The thread starts with the first run that has to be looked at and ends soon after the last.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from holdfast.support.atfork import on_fork
from holdfast.support.errors import RunNotFound, ServerUnavailable, StoreBusy, StoreUnavailable

if TYPE_CHECKING:
    from holdfast.values.runs import Snapshot

log = logging.getLogger("holdfast.waiters")

FIRST = 0.008  # seconds between two looks at the same run, at first
DOUBLINGS = 5  # of this pause: a quarter of a second
BATCH = 500  # runs that one look is about
READ = 50  # runs that are read at once, with their results
LINGER = 5.0  # seconds after which the thread ends when nobody waits
AWAY = (StoreBusy, StoreUnavailable, ServerUnavailable)

Answer: TypeAlias = "Snapshot | Exception | None"
"""The run that has ended, an error, or nothing if the run could not be read."""


class Watch:
    """One call that waits. `tell` is called in another thread and must return at once.

    reads   whether the thread reads the run and tells it; else it only tells that it is time to look
    last    whether the caller waits no longer: it is told the run as it stands
    """

    def __init__(self, run_id: str, tell: Callable[[Answer], None], *, reads: bool) -> None:
        self.run_id, self.tell, self.reads = run_id, tell, reads
        self.last = False
        self.over = False
        """Whether the run has ended, as far as we have heard."""
        self.due = math.inf
        self._looks = 0

    def look_later(self, now: float) -> None:
        """Put off the next look. Pauses double every three looks, and looks fall on multiples of half a pause."""
        pause = FIRST * 2 ** min(self._looks // 3, DOUBLINGS)
        self.due = (now + pause) // (pause / 2) * (pause / 2)
        self._looks += 1


class Waiter:
    """Whoever waits for runs of one Holdfast.

    over   of these runs, those that have ended or do not exist
    read   these runs as they stand; those that do not exist are left out
    """

    def __init__(
        self, over: Callable[[Sequence[str]], Collection[str]], read: Callable[[Sequence[str]], Sequence[Snapshot]]
    ) -> None:
        self._over, self._read = over, read
        self._reset()
        on_fork(self._reset)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._watches: dict[str, set[Watch]] = {}
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watch(self, run_id: str, tell: Callable[[Answer], None], *, reads: bool) -> Iterator[Watch]:
        """Wait for a run. Ends of this process's own commits are heard from now on."""
        watch = Watch(run_id, tell, reads=reads)
        with self._changed:
            self._watches.setdefault(run_id, set()).add(watch)
        try:
            yield watch
        finally:
            with self._changed:
                others = self._watches.get(run_id, set())
                others.discard(watch)
                if not others:
                    self._watches.pop(run_id, None)

    def look_soon(self, watch: Watch) -> None:
        """Look at the run from time to time."""
        with self._changed:
            if watch.due == math.inf:
                watch.look_later(time.monotonic())
                self._wake()

    def look_now(self, watch: Watch, *, last: bool = False) -> None:
        """Look at the run at once, and then from time to time."""
        with self._changed:
            watch.due, watch.last = 0.0, last
            self._wake()

    def ended(self, names: set[str], ended: Collection[str]) -> None:
        """A commit of this process ended these runs."""
        if not self._watches or not ended:
            return
        with self._changed:
            for watch in [watch for run_id in ended for watch in self._watches.get(run_id, ())]:
                if watch.reads:
                    watch.over, watch.due = True, 0.0
                    self._wake()
                else:
                    watch.tell(None)

    def _wake(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="holdfast-waiter", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _run(self) -> None:
        while batch := self._next():
            try:
                self._look(batch)
            except AWAY as error:
                log.debug("waiting for runs: %s", error)
                for watch in batch:
                    if watch.last:
                        self._tell(watch, None)
            except Exception as error:
                for watch in batch:
                    self._tell(watch, error)

    def _next(self) -> list[Watch]:
        """Those that are due to be looked at, as soon as there are any; none when nobody has waited for a while."""
        with self._changed:
            while True:
                now = time.monotonic()
                watches = [watch for watches in self._watches.values() for watch in watches]
                if due := [watch for watch in watches if watch.due <= now][:BATCH]:
                    for watch in due:
                        watch.look_later(now)
                    return due
                next_at = min((watch.due for watch in watches), default=math.inf)
                if next_at < math.inf:
                    self._changed.wait(next_at - now)
                elif not self._changed.wait(LINGER):
                    self._thread = None
                    return []

    def _look(self, batch: Sequence[Watch]) -> None:
        unknown = list({watch.run_id for watch in batch if not watch.over and not watch.last})
        over = set(self._over(unknown)) if unknown else set()
        for watch in batch:
            watch.over = watch.over or watch.run_id in over
            if watch.over and not watch.reads:
                self._tell(watch, None)
        reading = [watch for watch in batch if watch.reads and (watch.over or watch.last)]
        for start in range(0, len(reading), READ):
            self._tell_all(reading[start : start + READ])

    def _tell_all(self, watches: Sequence[Watch]) -> None:
        found = {run.id: run for run in self._read(list({watch.run_id for watch in watches}))}
        for watch in watches:
            run = found.get(watch.run_id)
            if run is None:
                self._tell(watch, RunNotFound(f"there is no run {watch.run_id}"))
            elif run.ended or watch.last:
                self._tell(watch, run)

    def _tell(self, watch: Watch, answer: Answer) -> None:
        with self._changed:
            watch.due = math.inf
        watch.tell(answer)
