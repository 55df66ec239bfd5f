"""Heartbeat: renews this worker's leases in a separate thread, so that slow job code does not delay it."""

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
from holdfast.worker.in_flight import InFlight, RunInFlight, transaction_start

log = logging.getLogger("holdfast.worker")


class Heartbeat:
    def __init__(
        self,
        store: Store,
        in_flight: InFlight,
        settings: Settings,
        clock: Clock,
        *,
        holder: str,
        on_busy: Callable[[StoreBusy], None] = lambda error: None,
        on_taken_over: Callable[[RunInFlight], None] = lambda running: None,
    ) -> None:
        """`on_taken_over` is called when a lease is gone: another worker may have the run now."""
        self._store, self._in_flight, self._settings, self._clock = store, in_flight, settings, clock
        self._holder, self._on_busy, self._on_taken_over = holder, on_busy, on_taken_over
        # Short, so that several renewals, each followed by `confirm_leases`, fit into one `proof_for`.
        self._patience = settings.renew_every / 5
        self._busy = False
        self._closed = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-heartbeat", daemon=True)
        self.last_beat_at = clock.elapsed()
        self.stopping = False
        """Whether the worker is about to stop; stored in its row."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._closed = True
        self._wake.set()
        self._thread.join(timeout=5)

    def renew_now(self) -> None:
        """Renew the leases at once instead of at the next interval."""
        self._wake.set()

    def record_beat(self, at: float) -> None:
        """Record a successful write to our row at this time.

        Nobody can take one of our leases before its duration and the wait after its expiry are over.
        """
        self.last_beat_at = at
        self._in_flight.guardian.safe_until(at + (self._settings.lease + self._settings.proof_for).total_seconds())

    def fresh(self) -> bool:
        """Whether our last heartbeat is at most two renew intervals old. Otherwise we must not claim or take over runs.

        The registration, just before this object is created, counts as the first heartbeat.
        """
        return self._clock.elapsed() - self.last_beat_at <= 2 * self._settings.renew_every.total_seconds()

    def beat(self) -> None:
        """Renew the lease of every run in flight, once."""
        held = self._in_flight.all()
        started = self._clock.elapsed()

        def renew(tx: Transaction) -> list[Renewal]:
            # A lease lasts from the start of its transaction. A slow reply shortens it, a wait for the lock does not.
            nonlocal started
            started = transaction_start(tx, self._clock)
            workers.beat(tx, self._holder, lease_for=self._settings.lease, stopping=self.stopping)
            return renew_leases(
                tx,
                [self._as_of_now(running) for running in held],
                holder=self._holder,
                lease_for=self._settings.lease,
                kill_grace=self._settings.kill_grace,
            )

        renewed = {
            (renewal.run_id, renewal.claim): renewal for renewal in self._store.do(renew, patience=self._patience)
        }
        self.record_beat(started)
        for running in held:
            renewal = renewed.get((running.lease.run_id, running.lease.claim))
            if renewal is None:
                self._lost(running)
                continue
            running.extend(started + self._settings.lease.total_seconds())
            if renewal.cancelled:
                running.stop("cancel", renewal.reason or "cancelled")

    def confirm_leases(self) -> None:
        """Read which leases are still ours while the database is too busy to renew them.

        An orchestrator must mark an expired lease and then wait before it may take the lease. So an unmarked lease is
        ours for at least that wait, and a marked one until the wait is over. The wait is measured with the clock's
        current time, because after a jump of the clock others may already consider the wait over.
        """
        held = self._in_flight.all()
        started, now = self._clock.elapsed(), self._clock.now()
        marks = self._store.read(lambda tx: lease_marks(tx, self._holder))
        first_mark = min((last_seen_at for last_seen_at in marks.values() if last_seen_at is not None), default=now)
        self._in_flight.guardian.safe_until(
            started + (self._settings.proof_for - max(now - first_mark, timedelta(0))).total_seconds()
        )
        for running in held:
            claim = (running.lease.run_id, running.lease.claim)
            if claim not in marks:
                self._lost(running)
                continue
            proof_for, last_seen_at = self._settings.proof_for, marks[claim]
            if last_seen_at is None:
                running.extend(max(running.lease_until, started + proof_for.total_seconds()))
            else:
                running.extend(started + (proof_for - max(now - last_seen_at, timedelta(0))).total_seconds())

    def _as_of_now(self, running: RunInFlight) -> Lease:
        """Return the lease with its deadline computed from the clock's current time.

        If the clock has jumped, the stored deadline is wrong, and a lease renewed up to it could expire too early.
        """
        if running.deadline is None:
            return running.lease
        left = timedelta(seconds=running.deadline - self._clock.elapsed())
        return replace(running.lease, deadline_at=self._clock.now() + left)

    def _lost(self, running: RunInFlight) -> None:
        # The lease is also gone if the worker, or the job with ctx.finish, has finished the run in the meantime.
        if not running.ended and not running.finishing and running.stop("lost", "the lease was lost"):
            log.warning("run %s: lease lost, stopping its work", running.lease.run_id)
            self._on_taken_over(running)

    def _run(self) -> None:
        interval = self._settings.renew_every.total_seconds()
        wait = interval
        while True:
            self._wake.wait(wait)
            if self._closed:
                return
            self._wake.clear()
            wait = interval / 10
            self._in_flight.guardian.require()
            try:
                if len(self._in_flight):  # an idle worker renews its row when it polls
                    with self._store.reserved():
                        self._renew()
                wait = interval
            except StoreBusy:
                pass
            except HoldfastError as error:
                log.warning("heartbeat failed, retrying: %s", error)
            except Exception:
                log.exception("heartbeat failed, retrying")

    def _renew(self) -> None:
        self._store.follow_clock()
        try:
            self.beat()
        except StoreBusy as error:
            if not self._busy:
                log.warning("heartbeat: %s; runs continue for as long as their leases are safe", error)
            self._busy = True
            self._on_busy(error)
            self.confirm_leases()
            raise
        if self._busy:
            log.info("heartbeat: the database accepts writes again")
        self._busy = False
