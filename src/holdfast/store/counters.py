"""Counters: what no row proves, counted in memory and written now and then.

lease_lost                 a worker lost a run that it had in hand
taken_over                 a run was taken from a worker that was lost
worker_startup_recovery    of those, by a worker that cleared up after its predecessor when it started
queue_rejected             a submission was refused because its queue (the label) was full
slot_missed                a slot of a schedule (the label) came due and nobody was there in time

What a process has not written when it is killed is lost, and a write whose reply was lost is counted twice: these are
for rates and alarms, not for books.
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
    "taken_over",
    "worker_startup_recovery",
    "queue_rejected",
    "slot_missed",
)
EVERY = 1.0  # seconds between two writes of one process
MOST = 10_000  # rows that are read; names times labels

Key: TypeAlias = tuple[str, str]
"""A counter's name, and what it is about (empty if there is only one)."""


class Counters:
    """What one process has counted and not yet written. Safe to use from any thread."""

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
        """What a transaction counted, now that it is committed, or what could not be written."""
        with self._lock:
            self._pending.update(counted)

    def flush(self, *, at_once: bool = False) -> None:
        """Write what is pending; unless `at_once`, no sooner than a second after the last time. What can't be written
        stays for the next time, and is no fault of whoever came by."""
        if not self._pending or not (at_once or self._clock.elapsed() - self._written >= EVERY):
            return
        with self._lock:
            taken, self._pending = self._pending, Counter()
            self._written = self._clock.elapsed()
        if not taken:
            return  # another thread came first
        try:
            self._store.do(lambda tx: write(tx, taken))
        except Exception:
            self.add_all(taken)


def write(tx: Transaction, counts: Mapping[Key, int]) -> None:
    """Count so many more."""
    rows = [{"name": name, "label": label, "count": count} for (name, label), count in sorted(counts.items())]
    tx.put("insert_counters", rows=[{"name": row["name"], "label": row["label"]} for row in rows])
    tx.put("set_counters", rows=rows)


def read(tx: Transaction) -> dict[Key, int]:
    """Every counter that was ever used."""
    return {(row["name"], row["label"]): row["value"] for row in tx.all("list_counters", limit=MOST)}
