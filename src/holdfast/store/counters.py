"""Counters: counts of rare events, collected in memory and written about once a second.

lease_lost                 a worker lost the lease of a run that it was executing
takeover                   a run was taken over from a lost worker
startup_takeover           a takeover by a worker that recovered the runs of its predecessor when it started
queue_rejected             a submission was refused because its queue (the label) was full
slot_missed                a slot of a schedule (the label) was due and no worker claimed it in time

The counts are approximate: a killed process loses the counts that it has not written, and a write whose reply was lost
counts twice. Use them for rates and alarms.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from holdfast.store.transaction import Transaction
from holdfast.support.atfork import on_fork

if TYPE_CHECKING:
    from holdfast.store.store import Store

NAMES = (
    "lease_lost",
    "takeover",
    "startup_takeover",
    "queue_rejected",
    "slot_missed",
)
EVERY = 1.0  # seconds between two writes of one process
MAX_ROWS = 10_000  # rows that are read: names times labels

Key: TypeAlias = tuple[str, str]
"""A counter's name and its label, which is empty if the counter has no labels."""


class Counters:
    """The counts that this process has not written yet. Safe to use from any thread."""

    def __init__(self, store: Store) -> None:
        self._store, self._clock = store, store.clock
        self._start()
        on_fork(self._start)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._pending: Counter[Key] = Counter()
        self._written = self._clock.elapsed() - EVERY

    def add(self, name: str, label: str = "", count: int = 1) -> None:
        with self._lock:
            self._pending[name, label] += count

    def add_all(self, counted: Iterable[Key] | Mapping[Key, int]) -> None:
        """Add the counts of a committed transaction, or those that could not be written."""
        with self._lock:
            self._pending.update(counted)

    def flush(self, *, at_once: bool = False) -> None:
        """Write the pending counts; unless `at_once`, not sooner than a second after the last write.

        Counts that can't be written stay pending, and the caller gets no error.
        """
        if not self._pending or not (at_once or self._clock.elapsed() - self._written >= EVERY):
            return
        with self._lock:
            taken, self._pending = self._pending, Counter()
            self._written = self._clock.elapsed()
        if not taken:
            return  # another thread has written them
        try:
            self._store.do(lambda tx: write(tx, taken))
        except Exception:
            self.add_all(taken)


def write(tx: Transaction, counts: Mapping[Key, int]) -> None:
    """Add these counts to the stored counters."""
    rows = [{"name": name, "label": label, "count": count} for (name, label), count in sorted(counts.items())]
    tx.put("insert_counters", rows=[{"name": row["name"], "label": row["label"]} for row in rows])
    tx.put("set_counters", rows=rows)


def read(tx: Transaction) -> dict[Key, int]:
    """Return every counter that was ever used."""
    return {(row["name"], row["label"]): row["value"] for row in tx.all("list_counters", limit=MAX_ROWS)}
