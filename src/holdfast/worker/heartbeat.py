"""Heartbeat: renews this worker's leases in a thread of its own, so that no job's code can stop it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from holdfast.runs import workers
from holdfast.runs.lease import Lease, Renewal, lease_marks, renew_leases
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support.clock import Clock
from holdfast.support.errors import HoldfastError, StoreBusy
from holdfast.support.settings import Settings
from holdfast.worker.in_flight import InFlight, RunInFlight, began

log = logging.getLogger("holdfast.worker")


class Heartbeat:
    def __init__(
        self,
        store: Store,
        hand: InFlight,
        settings: Settings,
        clock: Clock,
        *,
        holder: str,
        on_busy: Callable[[StoreBusy], None] = lambda error: None,
        on_taken: Callable[[RunInFlight], None] = lambda running: None,
    ) -> None:
        """`on_taken`: someone else may have this run now."""
        self._store, self._hand, self._settings, self._clock = store, hand, settings, clock
        self._holder, self._on_busy, self._on_taken = holder, on_busy, on_taken
        # Short, so that several attempts, and a look at our leases after each, fit into one `proof_for`.
        self._patience = settings.renew_every / 5
        self._busy = False
        self._closed = False
        self._hurried = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-heartbeat", daemon=True)
        self.beaten_at = clock.elapsed()
        self.stopping = False
        """Whether the worker is about to end, for those who look at it."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._closed = True
        self._hurried.set()
        self._thread.join(timeout=5)

    def hurry(self) -> None:
        """Renew now, not at the next interval."""
        self._hurried.set()

    def heard(self, at: float) -> None:
        """The database has heard us: until the next lease and the wait after it, nobody takes a lease of ours away."""
        self.beaten_at = at
        self._hand.guardian.safe_until(at + (self._settings.lease + self._settings.proof_for).total_seconds())

    def fresh(self) -> bool:
        """Whether we ourselves were heard within two renew intervals, so that we may judge others.

        A worker is created after it was registered, and that counts as its first heartbeat.
        """
        return self._clock.elapsed() - self.beaten_at <= 2 * self._settings.renew_every.total_seconds()

    def beat(self) -> None:
        """Renew every lease in hand, once."""
        held = self._hand.all()
        asked = self._clock.elapsed()

        def renew(tx: Transaction) -> list[Renewal]:
            # Whatever the database takes to answer counts against us, but not the wait for its lock.
            nonlocal asked
            asked = began(tx, self._clock)
            workers.beat(tx, self._holder, lease_for=self._settings.lease, stopping=self.stopping)
            return renew_leases(
                tx,
                [self._as_of_now(running) for running in held],
                holder=self._holder,
                lease_for=self._settings.lease,
                kill_grace=self._settings.kill_grace,
            )

        renewed = {
            (renewal.run_id, renewal.attempt): renewal for renewal in self._store.do(renew, patience=self._patience)
        }
        self.heard(asked)
        for running in held:
            renewal = renewed.get((running.lease.run_id, running.lease.attempt))
            if renewal is None:
                self._lost(running)
                continue
            running.extend(asked + self._settings.lease.total_seconds())
            if renewal.cancelled:
                running.stop("cancel", renewal.reason or "cancelled")

    def prove(self) -> None:
        """Read our leases when we can't renew them: a locked database takes nothing away from us.

        Whoever takes a lease away must first mark it and then wait. So a lease that is not marked now is ours for at
        least that long, and a marked one is ours until the wait is over. The mark counts as it reads now: if the clock
        has jumped since, others may already see the wait as over.
        """
        held = self._hand.all()
        asked, now = self._clock.elapsed(), self._clock.now()
        marks = self._store.read(lambda tx: lease_marks(tx, self._holder))
        first_mark = min((seen_at for seen_at in marks.values() if seen_at is not None), default=now)
        self._hand.guardian.safe_until(
            asked + (self._settings.proof_for - max(now - first_mark, timedelta(0))).total_seconds()
        )
        for running in held:
            attempt = (running.lease.run_id, running.lease.attempt)
            if attempt not in marks:
                self._lost(running)
                continue
            proof_for, seen_at = self._settings.proof_for, marks[attempt]
            if seen_at is None:
                running.extend(max(running.lease_until, asked + proof_for.total_seconds()))
            else:
                running.extend(asked + (proof_for - max(now - seen_at, timedelta(0))).total_seconds())

    def _as_of_now(self, running: RunInFlight) -> Lease:
        """The lease with its deadline as the clock reads now. When that has jumped, the written deadline is wrong, and
        a lease renewed up to it could have run out already while the work goes on."""
        if running.deadline is None:
            return running.lease
        left = timedelta(seconds=running.deadline - self._clock.elapsed())
        return replace(running.lease, deadline_at=self._clock.now() + left)

    def _lost(self, running: RunInFlight) -> None:
        # Its finish may have been committed while we asked, by us or by the job itself: then it is not lost but done.
        if not running.ended and not running.finishing and running.stop("lost", "its lease was taken away"):
            log.warning("run %s: lease lost, the work is stopped", running.lease.run_id)
            self._on_taken(running)

    def _run(self) -> None:
        interval = self._settings.renew_every.total_seconds()
        wait = interval
        while True:
            self._hurried.wait(wait)
            if self._closed:
                return
            self._hurried.clear()
            wait = interval / 10
            self._hand.guardian.require()
            try:
                if len(self._hand):  # an idle worker beats with its look
                    with self._store.reserved():
                        self._renew()
                wait = interval
            except StoreBusy:
                pass
            except HoldfastError as error:
                log.warning("heartbeat failed, trying again: %s", error)
            except Exception:
                log.exception("heartbeat failed, trying again")

    def _renew(self) -> None:
        self._store.follow_clock()
        try:
            self.beat()
        except StoreBusy as error:
            if not self._busy:
                log.warning("heartbeat: %s; the work goes on while its leases are not taken away", error)
            self._busy = True
            self._on_busy(error)
            self.prove()
            raise
        if self._busy:
            log.info("heartbeat: the database can be written again")
        self._busy = False
