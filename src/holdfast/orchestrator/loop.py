"""The orchestrator's loop: polls after every signal and once per poll interval. An idle poll is one query."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.orchestrator import build_requests, cancel_children, fan_out, promote, recover
from holdfast.orchestrator.schedule import Scheduler
from holdfast.runs import workers
from holdfast.store.notifier import Signal
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support.clock import Clock
from holdfast.support.errors import HoldfastError, StoreBusy
from holdfast.support.settings import Settings

log = logging.getLogger("holdfast.orchestrator")

BATCH = 1000
ROUNDS = 100


@dataclass(frozen=True, kw_only=True)
class Pulse:
    """Which work there is to do, read in one query."""

    ready: bool
    unchecked: bool
    open_key_locks: bool
    dependencies: bool
    pending_actions: bool
    child_cancellations: bool
    cancels: bool
    drains: bool
    """An operator has asked the polling worker to drain."""
    expires_at: datetime | None
    due_at: datetime | None
    clock_at: datetime | None
    """The database server's time; None for SQLite."""


def read_pulse(tx: Transaction, *, queues: Sequence[str], jobs: Sequence[str], holder: str) -> Pulse:
    """Read what there is to do for this worker and for the orchestrator."""
    row = tx.one("pulse", queues=list(queues), jobs=list(jobs), holder=holder)
    assert row is not None
    flags = (
        "ready",
        "unchecked",
        "open_key_locks",
        "dependencies",
        "pending_actions",
        "child_cancellations",
        "cancels",
        "drains",
    )
    values = {name: bool(row[name]) for name in flags}
    return Pulse(**values, expires_at=row["expires_at"], due_at=row["due_at"], clock_at=row["clock_at"])


class Orchestrator:
    """Promotes waiting runs, recovers lost ones and claims due slots. It never executes runs.

    Several orchestrators may work at once.

    With `moves=False` it only polls on behalf of its worker.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Clock,
        *,
        poll: Callable[[], Pulse],
        scheduler: Scheduler,
        may_recover: Callable[[], bool] = lambda: True,
        on_pulse: Callable[[Pulse], None] = lambda pulse: None,
        on_busy: Callable[[StoreBusy], None] = lambda error: None,
        chore: Callable[[], None] = lambda: None,
        moves: bool = True,
    ) -> None:
        self._store, self._settings, self._clock = store, settings, clock
        self._poll, self._may_recover, self._on_pulse, self._chore = poll, may_recover, on_pulse, chore
        self._on_busy = on_busy
        self._scheduler = scheduler
        self._moves = moves
        self._ended_lock = threading.Lock()
        self._ended: set[str] = set()
        self._has_dependencies = True
        self._cursor: tuple[str, str] | None = ("", "")
        self.signal = Signal()

    def on_commit(self, names: set[str], ended: list[str]) -> None:
        """Handle the notifications of a commit, in this process or another."""
        if not self._moves:
            return
        if ended and self._has_dependencies:
            with self._ended_lock:
                self._ended.update(ended)
            self.signal.set()
        if not names.isdisjoint(("waits", "key_locks", "")):
            self.signal.set()
        if "schedules" in names:
            self._scheduler.forget()
            self.signal.set()

    def tick(self) -> float:
        """Do everything that is due. Return the seconds until the next poll."""
        pulse = self._pulse()
        for _ in range(ROUNDS):
            if not self._moves or not self._round(pulse):
                break
            pulse = self._pulse()
        self._on_pulse(pulse)
        self._chore()
        return self._until_next(pulse)

    def run(self, stopping: threading.Event) -> None:
        """Tick until `stopping` is set. After an error, retry at the next tick."""
        wait = 0.0
        while not stopping.is_set():
            self.signal.wait(wait)
            if stopping.is_set():
                return
            try:
                with self._store.reserved():
                    wait = self.tick()
            except HoldfastError as error:
                log.warning("orchestrator: %s; retrying", error)
                if isinstance(error, StoreBusy):
                    self._on_busy(error)
                wait = self._settings.poll_interval.total_seconds()
            except Exception:
                log.exception("orchestrator failed; retrying")
                wait = self._settings.poll_interval.total_seconds()

    def _pulse(self) -> Pulse:
        pulse = self._poll()
        self._has_dependencies = pulse.dependencies
        return pulse

    def _round(self, pulse: Pulse) -> bool:
        """Move at most BATCH runs of each kind; False if nothing moved."""
        now = self._clock.now()
        moved = 0
        if pulse.dependencies:
            moved += self._check_dependencies()
        if pulse.due_at is not None and pulse.due_at <= now:
            moved += self._store.do(lambda tx: promote.due(tx, limit=BATCH))
        if pulse.pending_actions:
            moved += self._store.do(lambda tx: fan_out.stages(tx, limit=BATCH))
        if pulse.child_cancellations:
            moved += self._store.do(lambda tx: cancel_children.children(tx, limit=BATCH))
        if pulse.unchecked:
            moved += self._store.do(lambda tx: build_requests.resolve(tx, limit=BATCH))
            self._store.do(lambda tx: promote.check_waiting(tx, limit=BATCH))
        if pulse.unchecked or pulse.open_key_locks:
            moved += self._store.do(lambda tx: promote.assign_key_locks(tx, limit=BATCH))
        if pulse.unchecked:
            moved += self._store.do(lambda tx: promote.mark_checked(tx, limit=BATCH))
        if pulse.expires_at is not None and pulse.expires_at < now and self._may_take_over():
            moved += self._recover_expired()
            self._store.do(lambda tx: workers.forget(tx, before=tx.now - 10 * self._settings.lease))
        # After recovery, so that a timed-out run of a lost worker has ended before the next slot is claimed.
        moved += self._scheduler.keep(self._clock.now())
        return moved > 0

    def _check_dependencies(self) -> int:
        """Promote the dependents of ended runs, and check a page of all dependencies in case a signal was lost."""
        with self._ended_lock:
            ended = [self._ended.pop() for _ in range(min(BATCH, len(self._ended)))]
        moved = self._store.do(lambda tx: promote.dependents(tx, ended, limit=BATCH))
        if moved == BATCH:
            with self._ended_lock:
                self._ended.update(ended)  # more runs may depend on them
        cursor = self._cursor or ("", "")
        self._cursor = self._store.do(lambda tx: promote.dependencies_after(tx, cursor, limit=BATCH))
        return moved

    def _recover_expired(self) -> int:
        taken = self._store.do(self._recover)
        for takeover in taken:
            log.warning("%s", takeover)
        return len(taken)

    def _recover(self, tx: Transaction) -> list[recover.Takeover]:
        # Inside the transaction, because the clock may have jumped while we waited for the lock.
        self._store.follow_clock()
        return recover.expired(tx, wait=self._settings.takeover_wait, limit=BATCH) if self._may_take_over() else []

    def _may_take_over(self) -> bool:
        """Whether we may mark and take expired leases: our heartbeat is fresh, and our clock has not jumped recently.

        Expired leases are marked in the database, so recovery works even if every process lives for less than a lease.
        """
        return self._clock.settled_for() >= self._settings.lease and self._may_recover()

    def _until_next(self, pulse: Pulse) -> float:
        wait = self._settings.poll_interval
        for due_at in (pulse.due_at, self._scheduler.next_at()) if self._moves else ():
            if due_at is not None:
                wait = min(wait, max(due_at - self._clock.now(), timedelta(milliseconds=1)))
        return wait.total_seconds()
