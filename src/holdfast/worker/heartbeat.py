"""Heartbeat: renews this worker's leases in a thread of its own, so that no job's code can stop it."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from datetime import timedelta

from holdfast import leases, workers
from holdfast.clock import Clock
from holdfast.errors import HoldfastError
from holdfast.leases import Lease
from holdfast.settings import Settings
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.worker.running import Hand, Running, began

log = logging.getLogger("holdfast.worker")


class Heartbeat:
    def __init__(self, store: Store, hand: Hand, settings: Settings, clock: Clock, *, holder: str) -> None:
        self._store, self._hand, self._settings, self._clock, self._holder = (
            store,
            hand,
            settings,
            clock,
            holder,
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="holdfast-heartbeat", daemon=True)
        self.beaten_at = clock.elapsed()
        self.stopping = False
        """Whether the worker is about to end, for those who look at it."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=5)

    def fresh(self) -> bool:
        """Whether we ourselves have been heard within one renew interval, so that we may judge others."""
        return self._clock.elapsed() - self.beaten_at <= 2 * self._settings.renew_every.total_seconds()

    def beat(self) -> None:
        """Renew every lease in hand, once."""
        held = self._hand.all()
        asked = self._clock.elapsed()

        def renew(tx: Transaction) -> list[leases.Renewal]:
            # Whatever the database takes to answer counts against us, but not the wait for its lock.
            nonlocal asked
            asked = began(tx, self._clock)
            workers.beat(tx, self._holder, lease_for=self._settings.lease, stopping=self.stopping)
            return leases.renew(
                tx,
                [self._as_of_now(running) for running in held],
                holder=self._holder,
                lease_for=self._settings.lease,
                kill_grace=self._settings.kill_grace,
            )

        renewed = {(renewal.run_id, renewal.attempt): renewal for renewal in self._store.do(renew)}
        self.beaten_at = asked
        for running in held:
            renewal = renewed.get((running.lease.run_id, running.lease.attempt))
            if renewal is None:
                self._lost(running)
                continue
            running.extend(asked + self._settings.lease.total_seconds())
            if renewal.cancelled:
                running.stop("cancel", renewal.reason or "cancelled")

    def _as_of_now(self, running: Running) -> Lease:
        """The lease with its deadline as the clock reads now. When that has jumped, the written deadline is wrong, and
        a lease renewed up to it could have run out already while the work goes on."""
        if running.deadline is None:
            return running.lease
        left = timedelta(seconds=running.deadline - self._clock.elapsed())
        return replace(running.lease, deadline_at=self._clock.now() + left)

    def _lost(self, running: Running) -> None:
        # Its finish may have been committed while we asked, by us or by the job itself: then it is not lost but done.
        if not running.ended and not running.finishing and running.stop("lost", "its lease was taken away"):
            log.warning("run %s: lease lost, the work is stopped", running.lease.run_id)

    def _run(self) -> None:
        interval = self._settings.renew_every.total_seconds()
        wait = interval
        while not self._stopping.wait(wait):
            try:
                if len(self._hand):  # an idle worker beats with its look
                    self._store.follow_clock()
                    self.beat()
                wait = interval
            except HoldfastError as error:
                log.warning("heartbeat failed, trying again: %s", error)
                wait = interval / 10
            except Exception:
                log.exception("heartbeat failed, trying again")
                wait = interval / 10
