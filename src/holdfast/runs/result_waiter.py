"""Result waiters: calls of `result` and `aresult` that wait for runs to end. One thread polls for all of them.

    this process ends the run ─────▶ a sync caller reads it at once; for an async caller the thread reads it
    another process ends the run ──▶ the thread finds it; one query covers all runs that are due for polling

A run is polled often at first and less often later. Polls are aligned to common times, so that many runs share a query.
The thread starts with the first run that needs polling and stops soon after the last.
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

FIRST = 0.008  # seconds between the first polls of a run
DOUBLINGS = 5  # how many times this pause doubles, up to a quarter of a second
BATCH = 500  # runs in one poll
READ = 50  # runs that are read in one query, with their results
LINGER = 5.0  # seconds without a waiting call after which the thread stops
AWAY = (StoreBusy, StoreUnavailable, ServerUnavailable)

Answer: TypeAlias = "Snapshot | Exception | None"
"""The ended run, an error, or None if the run could not be read."""


class Watch:
    """One waiting call. `notify` is called from another thread and must return at once.

    reads   whether the thread reads the run and passes it to `notify`; otherwise it passes None, and the caller reads
    last    whether the caller's timeout has passed; it then gets the run as it is now
    """

    def __init__(self, run_id: str, notify: Callable[[Answer], None], *, reads: bool) -> None:
        self.run_id, self.notify, self.reads = run_id, notify, reads
        self.last = False
        self.ended = False
        """Whether the run is known to have ended."""
        self.due = math.inf
        self._polls = 0

    def look_later(self, now: float) -> None:
        """Schedule the next poll. Pauses double every three polls; polls are aligned to multiples of half a pause."""
        pause = FIRST * 2 ** min(self._polls // 3, DOUBLINGS)
        self.due = (now + pause) // (pause / 2) * (pause / 2)
        self._polls += 1


class Waiter:
    """All waiting calls of one Holdfast.

    find_ended   returns which of these runs have ended or do not exist
    read         returns the snapshots of these runs, without those that do not exist
    """

    def __init__(
        self,
        find_ended: Callable[[Sequence[str]], Collection[str]],
        read: Callable[[Sequence[str]], Sequence[Snapshot]],
    ) -> None:
        self._find_ended, self._read = find_ended, read
        self._reset()
        on_fork(self._reset)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._watches: dict[str, set[Watch]] = {}
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def watch(self, run_id: str, notify: Callable[[Answer], None], *, reads: bool) -> Iterator[Watch]:
        """Register a waiting call. From now on it is notified when a commit of this process ends the run."""
        watch = Watch(run_id, notify, reads=reads)
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
        """Poll the run from time to time."""
        with self._changed:
            if watch.due == math.inf:
                watch.look_later(time.monotonic())
                self._wake()

    def look_now(self, watch: Watch, *, last: bool = False) -> None:
        """Poll the run at once, and then from time to time."""
        with self._changed:
            watch.due, watch.last = 0.0, last
            self._wake()

    def ended(self, names: set[str], ended: Collection[str]) -> None:
        """Notify the calls that wait for these runs; a commit of this process has ended them."""
        if not self._watches or not ended:
            return
        with self._changed:
            for watch in [watch for run_id in ended for watch in self._watches.get(run_id, ())]:
                if watch.reads:
                    watch.ended, watch.due = True, 0.0
                    self._wake()
                else:
                    watch.notify(None)

    def _wake(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="holdfast-waiter", daemon=True)
            self._thread.start()
        self._changed.notify()

    def _run(self) -> None:
        while batch := self._next():
            try:
                self._poll(batch)
            except AWAY as error:
                log.debug("could not check whether the awaited runs have ended: %s", error)
                for watch in batch:
                    if watch.last:
                        self._answer(watch, None)
            except Exception as error:
                for watch in batch:
                    self._answer(watch, error)

    def _next(self) -> list[Watch]:
        """Wait until some calls are due for polling and return them; return none after LINGER without any call."""
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

    def _poll(self, batch: Sequence[Watch]) -> None:
        unknown = list({watch.run_id for watch in batch if not watch.ended and not watch.last})
        ended = set(self._find_ended(unknown)) if unknown else set()
        for watch in batch:
            watch.ended = watch.ended or watch.run_id in ended
            if watch.ended and not watch.reads:
                self._answer(watch, None)
        reading = [watch for watch in batch if watch.reads and (watch.ended or watch.last)]
        for start in range(0, len(reading), READ):
            self._read_and_answer(reading[start : start + READ])

    def _read_and_answer(self, watches: Sequence[Watch]) -> None:
        runs = {run.id: run for run in self._read(list({watch.run_id for watch in watches}))}
        for watch in watches:
            run = runs.get(watch.run_id)
            if run is None:
                self._answer(watch, RunNotFound(f"there is no run {watch.run_id}"))
            elif run.ended or watch.last:
                self._answer(watch, run)

    def _answer(self, watch: Watch, answer: Answer) -> None:
        with self._changed:
            watch.due = math.inf
        watch.notify(answer)
