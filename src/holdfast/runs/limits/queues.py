"""Queues: pause, resume and limit them, and `hf.queues`.

A queue that is neither paused nor limited has no row; `*` stands for all queues together.
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
    """The queues of one Holdfast: what they have, their pauses and limits."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def list(self) -> list[Queue]:
        """Every queue that a live worker serves, or that has a run, a pause, a limit or a refusal."""
        return self._runtime.read(list_queues)

    def get(self, name: str) -> Queue:
        """One queue as it stands; one of which there is nothing to say has no run, no pause and no limit."""
        return next((queue for queue in self.list() if queue.name == name), Queue(name=name))

    def pause(self, name: str, *, note: str | None = None, by: str | None = None) -> None:
        """Let nothing of this queue be claimed until `resume`; what runs goes on."""
        Limits().check(name)

        def pause(tx: Transaction) -> None:
            pause_queue(tx, name, note=note)
            audit.record(tx, by, "pause", queue=name, note=note)

        self._runtime.do(pause)

    def resume(self, name: str, *, by: str | None = None) -> None:
        """Let a paused queue be claimed again."""

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
        """Change limits of a queue (`*` is all of them together), for every process, at once. None lifts one."""
        limits = Limits(max_queued=max_queued, concurrency=concurrency)
        limits.check(name)
        audit.check(by)
        write_limits(self._runtime.store, name, limits, by=by)


MOST = 10_000  # ready runs of a queue, and waiting runs of all queues, that are counted; beyond it there are "more"
QUEUES = 10_000

SETTLED = timedelta(minutes=1)
"""By then every submission that began before a bound was set has been committed or is known to be uncounted."""


class DeclaredLimits:
    """The limits that the code sets by `hf.queue(…)`. A process that sets none leaves a queue's row as it is."""

    def __init__(self) -> None:
        self._limits: dict[str, Limits] = {}

    def add(self, name: str, limits: Limits) -> None:
        limits.check(name)
        if limits.says_nothing:
            self._limits.pop(name, None)
        else:
            self._limits[name] = limits

    def apply(self, store: Store) -> None:
        """Write them down, if they are not what the code last said."""
        if not self._limits:
            return
        wanted = dict(self._limits)
        news = store.read(lambda tx: [name for name in sorted(wanted) if is_news(tx, name, wanted[name])])
        for name in news:
            write_limits(store, name, wanted[name], declared=True)


def write_limits(store: Store, name: str, limits: Limits, *, declared: bool = False, by: str | None = None) -> None:
    """Set what of a queue's limits was said, and count what is there."""
    bounds = isinstance(limits.max_queued, int)
    if bounds:
        # Before, in small pieces: what runs must not be held still while all that waits is counted.
        _fill(store, name)

    def limit(tx: Transaction) -> None:
        limit_queue(tx, name, limits, declared=declared)
        audit.record(tx, by, "limit", queue=name, limits=limits.text)

    store.do(limit)
    if bounds:
        # Again, for runs that moved from place to place just then.
        _fill(store, name)


def _fill(store: Store, name: str) -> None:
    after: str | None = ""
    while after is not None:
        after = store.do(partial(capacity.fill, queue=name, after=after))


def pause_queue(tx: Transaction, name: str, *, note: str | None) -> None:
    """Let nothing of this queue be claimed; what runs goes on."""
    tx.put("ensure_queue", name=name)
    json_text.check_text(note, what="note")
    tx.put("pause_queue", name=name, now=tx.now, note=note)


def resume_queue(tx: Transaction, name: str) -> None:
    """Let it be claimed again."""
    tx.put("resume_queue", name=name)
    tx.notify(name)


def limit_queue(tx: Transaction, name: str, limits: Limits, *, declared: bool = False) -> None:
    """Set what of a queue's limits was said; runs that are there are counted from now on.

    `declared` says that it was the code that said it.
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


def is_news(tx: Transaction, name: str, limits: Limits) -> bool:
    """Whether the code says other limits than it last said: what was changed at run time stands until it does."""
    found = tx.one("find_queue", name=name)
    return found is None or found["declared"] != limits.text


def list_queues(tx: Transaction) -> list[Queue]:
    """Every queue that a live worker serves, or that has a run, a pause, a limit or a refusal.

    It reads a bounded number of runs, however many there are.
    """
    tx.one("read_by_index")
    ready = {row["queue"]: row for row in tx.all("count_ready", queues=QUEUES, limit=MOST + 1)}
    waiting = {row["queue"]: row for row in tx.all("count_waits", limit=MOST + 1)}
    running = {row["queue"]: row["runs"] for row in tx.all("count_running")}
    rules = {row["name"]: row for row in tx.all("list_limits", limit=QUEUES) if _rules(row)}
    seats = {row["queue"]: row["seats"] for row in tx.all("count_all_seats")}
    seats[EVERY_QUEUE] = sum(seats.values())
    rejected = {label: count for (name, label), count in counters.read(tx).items() if name == "queue_rejected"}
    served = {name for worker in workers.live(tx) for name in worker.queues}
    # The oldest waiting runs are counted, of whatever queue: each of these queues may have more.
    cut = sum(row["runs"] for row in waiting.values()) > MOST

    def queue(name: str) -> Queue:
        is_ready, waits = ready.get(name, _NO_RUNS), waiting.get(name, _NO_RUNS)
        counted = min(is_ready["runs"], MOST)
        return Queue(
            **rules.get(name, {"name": name}),
            queued=counted + waits["runs"],
            ready=counted,
            more=is_ready["runs"] > MOST or (cut and name in waiting),
            running=running.get(name, 0),
            seats=seats.get(name, 0),
            oldest_at=_oldest(waits["oldest"], is_ready["plain"], is_ready["ranked"]),
            oldest_ready_at=_oldest(is_ready["plain"], is_ready["ranked"]),
            rejected=rejected.get(name, 0),
        )

    return [queue(name) for name in sorted({*ready, *waiting, *running, *rules, *rejected, *served})]


_NO_RUNS: Row = {"runs": 0, "oldest": None, "plain": None, "ranked": None}


def _rules(row: Row) -> bool:
    """Whether a queue's row still says something: one that was resumed, or whose limits were lifted, does not."""
    return any(row[name] is not None for name in ("paused_at", "max_queued", "concurrency"))


def _oldest(*run_ids: str | None) -> datetime | None:
    """When the oldest of these runs was submitted."""
    oldest = min((run_id for run_id in run_ids if run_id is not None), default=None)
    return None if oldest is None else Ids.made_at(oldest)
