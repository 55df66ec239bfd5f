"""The orchestrator's loop: polls after every signal and on every tick; one query if there is nothing to do."""

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
    """Whether there is anything to do, answered in one query."""

    ready: bool
    looks: bool
    open_holds: bool
    needs: bool
    errands: bool
    stops: bool
    cancels: bool
    drains: bool
    """Someone has asked the worker that looks to drain."""
    expires_at: datetime | None
    due_at: datetime | None
    clock_at: datetime | None
    """The database's own time, where it has one."""


def read_pulse(tx: Transaction, *, queues: Sequence[str], jobs: Sequence[str], holder: str) -> Pulse:
    """Is there anything to do for this worker?"""
    row = tx.one("pulse", queues=list(queues), jobs=list(jobs), holder=holder)
    assert row is not None
    flags = ("ready", "looks", "open_holds", "needs", "errands", "stops", "cancels", "drains")
    seen = {name: bool(row[name]) for name in flags}
    return Pulse(**seen, expires_at=row["expires_at"], due_at=row["due_at"], clock_at=row["clock_at"])


class Orchestrator:
    """Moves waiting runs on and takes over lost ones. It never executes work; any number may run.

    With `moves=False` it only polls, for the worker that it belongs to.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Clock,
        *,
        look: Callable[[], Pulse],
        scheduler: Scheduler,
        may_recover: Callable[[], bool] = lambda: True,
        on_pulse: Callable[[Pulse], None] = lambda pulse: None,
        on_busy: Callable[[StoreBusy], None] = lambda error: None,
        chore: Callable[[], None] = lambda: None,
        moves: bool = True,
    ) -> None:
        self._store, self._settings, self._clock = store, settings, clock
        self._look, self._may_recover, self._on_pulse, self._chore = look, may_recover, on_pulse, chore
        self._on_busy = on_busy
        self._scheduler = scheduler
        self._moves = moves
        self._ended_lock = threading.Lock()
        self._ended: set[str] = set()
        self._needs_exist = True
        self._cursor: tuple[str, str] | None = ("", "")
        self.signal = Signal()

    def heard(self, names: set[str], ended: list[str]) -> None:
        """A transaction was committed somewhere."""
        if not self._moves:
            return
        if ended and self._needs_exist:
            with self._ended_lock:
                self._ended.update(ended)
            self.signal.set()
        if not names.isdisjoint(("waits", "holds", "")):
            self.signal.set()
        if "schedules" in names:
            self._scheduler.forget()
            self.signal.set()

    def tick(self) -> float:
        """Do everything that is due; the seconds until there may be more."""
        pulse = self._pulse()
        for _ in range(ROUNDS):
            if not self._moves or not self._round(pulse):
                break
            pulse = self._pulse()
        self._on_pulse(pulse)
        self._chore()
        return self._until_next(pulse)

    def run(self, stopping: threading.Event) -> None:
        """Tick until told to stop; after a database error, try again at the next tick."""
        wait = 0.0
        while not stopping.is_set():
            self.signal.wait(wait)
            if stopping.is_set():
                return
            try:
                with self._store.reserved():
                    wait = self.tick()
            except HoldfastError as error:
                log.warning("orchestrator: %s; trying again at the next tick", error)
                if isinstance(error, StoreBusy):
                    self._on_busy(error)
                wait = self._settings.tick.total_seconds()
            except Exception:
                log.exception("orchestrator failed; trying again at the next tick")
                wait = self._settings.tick.total_seconds()

    def _pulse(self) -> Pulse:
        pulse = self._look()
        self._needs_exist = pulse.needs
        return pulse

    def _round(self, pulse: Pulse) -> bool:
        """Move at most a batch of each kind; whether anything moved."""
        now = self._clock.now()
        moved = 0
        if pulse.needs:
            moved += self._needs()
        if pulse.due_at is not None and pulse.due_at <= now:
            moved += self._store.do(lambda tx: promote.due(tx, limit=BATCH))
        if pulse.errands:
            moved += self._store.do(lambda tx: fan_out.stages(tx, limit=BATCH))
        if pulse.stops:
            moved += self._store.do(lambda tx: cancel_children.children(tx, limit=BATCH))
        if pulse.looks:
            moved += self._store.do(lambda tx: build_requests.settle(tx, limit=BATCH))
            self._store.do(lambda tx: promote.looks(tx, limit=BATCH))
        if pulse.looks or pulse.open_holds:
            moved += self._store.do(lambda tx: promote.turns(tx, limit=BATCH))
        if pulse.looks:
            moved += self._store.do(lambda tx: promote.seen(tx, limit=BATCH))
        if pulse.expires_at is not None and pulse.expires_at < now and self._can_judge():
            moved += self._recovered()
            self._store.do(lambda tx: workers.forget(tx, before=tx.now - 10 * self._settings.lease))
        # After recovery: a run over its time whose worker is gone has ended before the next slot is claimed.
        moved += self._scheduler.keep(self._clock.now())
        return moved > 0

    def _needs(self) -> int:
        """Move the runs that depend on ended ones, and check a page of all dependencies, in case a signal was lost."""
        with self._ended_lock:
            ended = [self._ended.pop() for _ in range(min(BATCH, len(self._ended)))]
        moved = self._store.do(lambda tx: promote.needs(tx, ended, limit=BATCH))
        if moved == BATCH:
            with self._ended_lock:
                self._ended.update(ended)  # there may be more who need them
        cursor = self._cursor or ("", "")
        self._cursor = self._store.do(lambda tx: promote.needs_after(tx, cursor, limit=BATCH))
        return moved

    def _recovered(self) -> int:
        taken = self._store.do(self._recover)
        for takeover in taken:
            log.warning("%s", takeover)
        return len(taken)

    def _recover(self, tx: Transaction) -> list[recover.Takeover]:
        # Asked inside the transaction: while we waited for it the clock may have jumped, and others have followed it.
        self._store.follow_clock()
        return recover.expired(tx, wait=self._settings.takeover_wait, limit=BATCH) if self._can_judge() else []

    def _can_judge(self) -> bool:
        """Whether we may mark and take away leases: our own heartbeat is fresh, and our clock has not jumped for one
        lease. A process that lives shorter than a lease may judge too: the marks are in the database."""
        return self._clock.settled_for() >= self._settings.lease and self._may_recover()

    def _until_next(self, pulse: Pulse) -> float:
        wait = self._settings.tick
        for due_at in (pulse.due_at, self._scheduler.next_at()) if self._moves else ():
            if due_at is not None:
                wait = min(wait, max(due_at - self._clock.now(), timedelta(milliseconds=1)))
        return wait.total_seconds()
