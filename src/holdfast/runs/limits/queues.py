"""Queues: pause, resume and limit queues, and the namespace `hf.queues`.

A queue has a row once it is paused or limited; `*` stands for all queues together.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from holdfast.runs import audit, workers
from holdfast.runs.limits import capacity
from holdfast.runs.limits.concurrency import fill_permits
from holdfast.runtime import Runtime
from holdfast.store import counters
from holdfast.store.store import Store
from holdfast.store.transaction import Row, Transaction
from holdfast.support import json_text
from holdfast.support.ids import Ids
from holdfast.values.queues import EVERY_QUEUE, UNSET, Limits, Queue, Unset


class Queues:
    """The queues of one Holdfast, with their runs, pauses and limits."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def list(self) -> list[Queue]:
        """Return every queue that a live worker serves or that has unfinished runs, a pause, limits or refusals."""
        return self._runtime.read(list_queues)

    def get(self, name: str) -> Queue:
        """Return one queue; an unknown name gives a queue without runs, pause or limits."""
        return next((queue for queue in self.list() if queue.name == name), Queue(name=name))

    def pause(self, name: str, *, note: str | None = None, by: str | None = None) -> None:
        """Stop claims from this queue until `resume`; running runs continue."""
        Limits().check(name)

        def pause(tx: Transaction) -> None:
            pause_queue(tx, name, note=note)
            audit.record(tx, by, "pause", queue=name, note=note)

        self._runtime.do(pause)

    def resume(self, name: str, *, by: str | None = None) -> None:
        """Allow claims from a paused queue again."""

        def resume(tx: Transaction) -> None:
            resume_queue(tx, name)
            audit.record(tx, by, "resume", queue=name)

        self._runtime.do(resume)

    def limit(
        self,
        name: str,
        *,
        max_queued: int | Unset | None = UNSET,
        concurrency: int | Unset | None = UNSET,
        by: str | None = None,
    ) -> None:
        """Change limits of a queue (`*`: all queues together) for every process, at once. None removes a limit."""
        limits = Limits(max_queued=max_queued, concurrency=concurrency)
        limits.check(name)
        audit.check(by)
        write_limits(self._runtime.store, name, limits, by=by)


MOST = 10_000  # how many ready runs per queue, and waiting runs of all queues, are counted; above that, `more` is true
QUEUES = 10_000

SETTLED = timedelta(minutes=1)
"""A run submitted within this time after a capacity was set may have no capacity row, because its submission may have
begun before. `verify` does not report such a run."""


class DeclaredLimits:
    """The limits that the code sets with `hf.queue(…)`. The row of a queue without such limits stays as it is."""

    def __init__(self) -> None:
        self._limits: dict[str, Limits] = {}

    def add(self, name: str, limits: Limits) -> None:
        limits.check(name)
        if limits.is_empty:
            self._limits.pop(name, None)
        else:
            self._limits[name] = limits

    def apply(self, store: Store) -> None:
        """Write each limit that differs from its last declared value."""
        if not self._limits:
            return
        wanted = dict(self._limits)
        changed = store.read(lambda tx: [name for name in sorted(wanted) if _has_changed(tx, name, wanted[name])])
        for name in changed:
            write_limits(store, name, wanted[name], declared=True)


def write_limits(store: Store, name: str, limits: Limits, *, declared: bool = False, by: str | None = None) -> None:
    """Set the given limits of a queue, and count its existing runs if it becomes bounded."""
    bounds = isinstance(limits.max_queued, int)
    if bounds:
        # Count in small transactions first, so that no lock is held while all unfinished runs are counted.
        _fill(store, name)

    def limit(tx: Transaction) -> None:
        limit_queue(tx, name, limits, declared=declared)
        audit.record(tx, by, "limit", queue=name, limits=limits.text)

    store.do(limit)
    if bounds:
        # Count again: the first count misses runs that moved to another table in the meantime.
        _fill(store, name)


def _fill(store: Store, name: str) -> None:
    after: str | None = ""
    while after is not None:
        after = store.do(partial(capacity.fill, queue=name, after=after))


def pause_queue(tx: Transaction, name: str, *, note: str | None) -> None:
    """Stop claims from this queue; running runs continue."""
    tx.put("ensure_queue", name=name)
    json_text.check_text(note, what="note")
    tx.put("pause_queue", name=name, now=tx.now, note=note)


def resume_queue(tx: Transaction, name: str) -> None:
    """Allow claims from this queue again."""
    tx.put("resume_queue", name=name)
    tx.notify(name)


def limit_queue(tx: Transaction, name: str, limits: Limits, *, declared: bool = False) -> None:
    """Set the given limits of a queue; its existing runs count from now on.

    `declared` is true if the limits were set in code, not by an operator.
    """
    tx.put("ensure_queue", name=name)
    [before] = tx.all("lock_queue", name=name)
    max_queued = before["max_queued"] if limits.max_queued is UNSET else limits.max_queued
    concurrency = before["concurrency"] if limits.concurrency is UNSET else limits.concurrency
    became_bounded = before["max_queued"] is None and max_queued is not None
    counted_at = tx.now + SETTLED if became_bounded else before["counted_at"]
    tx.put(
        "set_limits",
        name=name,
        max_queued=max_queued,
        concurrency=concurrency,
        counted_at=counted_at,
        declared=limits.text if declared else before["declared"],
    )
    if became_bounded:
        after: str | None = ""
        while after is not None:
            after = capacity.fill(tx, name, after=after)
    elif before["max_queued"] is not None and max_queued is None:
        capacity.clear(tx)
    if before["concurrency"] is None and concurrency is not None:
        fill_permits(tx, name)
    tx.notify(name)


def _has_changed(tx: Transaction, name: str, limits: Limits) -> bool:
    """Return whether the code declares different limits from last time. Until it does, limits set at run time stay."""
    found = tx.one("find_queue", name=name)
    return found is None or found["declared"] != limits.text


def list_queues(tx: Transaction) -> list[Queue]:
    """Return every queue that a live worker serves or that has unfinished runs, a pause, limits or refusals.

    The number of rows that it reads is bounded, however many runs there are.
    """
    tx.one("read_by_index")
    ready = {row["queue"]: row for row in tx.all("count_ready", queues=QUEUES, limit=MOST + 1)}
    waiting = {row["queue"]: row for row in tx.all("count_waits", limit=MOST + 1)}
    running = {row["queue"]: row["runs"] for row in tx.all("count_running")}
    limits = {row["name"]: row for row in tx.all("list_limits", limit=QUEUES) if _has_limits(row)}
    used = {row["queue"]: row["used"] for row in tx.all("count_all_capacity")}
    used[EVERY_QUEUE] = sum(used.values())
    rejected = {label: count for (name, label), count in counters.read(tx).items() if name == "queue_rejected"}
    served = {name for worker in workers.live(tx) for name in worker.queues}
    # Only the oldest waiting runs of all queues are counted, so each of these queues may have more.
    truncated = sum(row["runs"] for row in waiting.values()) > MOST

    def queue(name: str) -> Queue:
        ready_runs, waiting_runs = ready.get(name, _NO_RUNS), waiting.get(name, _NO_RUNS)
        counted = min(ready_runs["runs"], MOST)
        return Queue(
            **limits.get(name, {"name": name}),
            queued=counted + waiting_runs["runs"],
            ready=counted,
            more=ready_runs["runs"] > MOST or (truncated and name in waiting),
            running=running.get(name, 0),
            capacity_used=used.get(name, 0),
            oldest_at=_oldest(waiting_runs["oldest"], ready_runs["plain"], ready_runs["ranked"]),
            oldest_ready_at=_oldest(ready_runs["plain"], ready_runs["ranked"]),
            rejected=rejected.get(name, 0),
        )

    return [queue(name) for name in sorted({*ready, *waiting, *running, *limits, *rejected, *served})]


_NO_RUNS: Row = {"runs": 0, "oldest": None, "plain": None, "ranked": None}


def _has_limits(row: Row) -> bool:
    """Return whether the queue is paused or limited; its row remains after both have ended."""
    return any(row[name] is not None for name in ("paused_at", "max_queued", "concurrency"))


def _oldest(*run_ids: str | None) -> datetime | None:
    """Return when the oldest of these runs was submitted."""
    oldest = min((run_id for run_id in run_ids if run_id is not None), default=None)
    return None if oldest is None else Ids.created_at(oldest)
