"""The worker's loop: finish ended runs and claim ready ones, in one commit.

    claim ──▶ dispatcher (threads, event loop, processes) ──▶ completer ──▶ finish + claim ──▶ …

Runs that end during a commit are finished by the next one, so the busier the worker, the larger its batches.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from holdfast.jobs.registry import OPERATIONS
from holdfast.orchestrator import promote
from holdfast.runs import workers
from holdfast.runs.claim import Claim, claim_runs
from holdfast.runtime import Runtime
from holdfast.store.notifier import Signal
from holdfast.store.transaction import Transaction
from holdfast.support.errors import HoldfastError, StoreBusy, StoreUnavailable, StoreUnsafe, WorkerExists
from holdfast.worker import attempt_log
from holdfast.worker.attempt_log import FailureHooks
from holdfast.worker.completer import Completer
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.declarations import Declarations
from holdfast.worker.dispatch import Dispatcher
from holdfast.worker.event_buffer import EventBuffer, Told
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.in_flight import InFlight, RunInFlight, began
from holdfast.worker.poll import ScanCursor
from holdfast.worker.run_services import StepWriter

log = logging.getLogger("holdfast.worker")

LINGER, MOMENT = 4, 0.0005
SHUTS_DOWN = "its worker shuts down"
OLDEST_EVERY = 10  # every tenth claim goes by age alone, so that no run starves behind higher priorities


class WorkerLoop:
    """Finishes and claims the runs of one worker, a commit at a time. Only the worker's thread calls `turn`."""

    def __init__(
        self,
        runtime: Runtime,
        in_flight: InFlight,
        heartbeat: Heartbeat,
        deadlines: Deadlines,
        event_buffer: EventBuffer,
        declarations: Declarations,
        *,
        holder: str,
        queues: Sequence[str],
        jobs: Sequence[str],
        concurrency: int,
        named: bool,
    ) -> None:
        """`named`: the worker holds a name, and starts nothing once its row in `workers` is gone.

        The worker changes `queues` and `jobs` in place when more are declared.
        """
        self.runtime, self.in_flight, self.id = runtime, in_flight, holder
        self.queues, self.concurrency = queues, concurrency
        self.signal = Signal()
        self.event_buffer = event_buffer
        self.claimed = 0
        self._heartbeat, self._deadlines, self._named = heartbeat, deadlines, named
        self._jobs = jobs
        self._per_worker: Mapping[str, int] = declarations.per_worker
        self._bulk: RunInFlight | None = None
        self._bulk_wanted, self._bulk_at = True, 0.0
        self.completer = Completer(
            runtime,
            in_flight,
            FailureHooks(runtime, declarations.failure_hooks),
            self.signal,
            holder=holder,
            limited=self._per_worker,
            on_room=self.look,
        )
        self._dispatcher = Dispatcher(
            runtime,
            self.event_buffer,
            StepWriter(runtime, holder),
            settle=self.completer.settle,
            on_change=self.look,
            in_flight=in_flight,
            artifact_store=declarations.artifact_store,
        )
        deadlines.loops = self._dispatcher.loops
        self._hungry = True
        self._closed = self._leaving = False
        self._backlog = False
        self._scan_cursor = ScanCursor()
        self._cycles = 0
        self._doubt = False
        self._pause = threading.Event()

    @property
    def idle(self) -> bool:
        """Whether no run is in flight and nothing waits to be written."""
        return not self.in_flight and not self.completer and not self.event_buffer

    def look(self, *, steered: bool = False) -> None:
        """Look for runs to claim; if `steered`, also at once for a bulk operation that an operator asked for."""
        self._hungry = self._bulk_wanted = True
        if steered:
            self._bulk_at = 0.0
        self.signal.set()

    def stop_claiming(self) -> None:
        """Start nothing more, from now on."""
        self._closed = True
        self.signal.set()

    def release(self) -> None:
        """Tell every run in flight to stop, and every run that a commit under way still claims."""
        self._closed = self._leaving = True
        for running in self.in_flight.all():
            running.stop("shutdown", SHUTS_DOWN)

    def turn(self) -> None:
        """Commit once if there is something to write or to claim; else wait for the signal."""
        wanted = self._free(len(self.completer)) > 0 and (self._hungry or self.completer.frees_a_key())
        # Without a fresh heartbeat our clock may be behind, and new leases could be expired when they are made.
        claiming = not self._closed and (wanted or self._takes_bulk()) and self._heartbeat.fresh()
        if not self.completer and not claiming and not self.event_buffer:
            self.signal.wait(self.runtime.settings.tick.total_seconds())
            return
        if self._backlog:
            self._linger()
        try:
            if self._doubt:
                self._release_unknown()
            self._commit(claim=claiming)
        except (StoreBusy, StoreUnavailable) as error:
            self.back_off(error)

    def _linger(self) -> None:
        """In a backlog, wait a moment for runs that are about to end: one commit finishes them all."""
        for _ in range(LINGER):
            before = len(self.completer)
            if before >= len(self.in_flight):
                return
            self._pause.wait(MOMENT)
            if len(self.completer) == before:
                return

    def _commit(self, *, claim: bool) -> None:
        """Finish and claim in one transaction; if it can't be written, finish alone."""
        done = self.completer.take()
        told = self.event_buffer.take()
        limit = self._free(len(done)) if claim else 0
        bulk = claim and self._takes_bulk()
        room = self._room({running for running, _ in done}) if self._per_worker else {}
        # Before the claim: a signal from now on is for the next turn.
        if limit > 0:
            self._hungry = False
        if bulk:
            self._bulk_wanted = False
            self._bulk_at = self.runtime.clock.elapsed() + self.runtime.settings.tick.total_seconds()
        asked = self.runtime.clock.elapsed()

        def write(tx: Transaction) -> tuple[set[str], list[Claim]]:
            nonlocal asked
            asked = began(tx, self.runtime.clock)
            self.event_buffer.write(tx, told)
            lost = self.completer.write(tx, done)
            promote.hand_on(tx)
            return lost, [] if self._closed else self._claim(tx, limit, room, bulk=bulk)

        try:
            lost, claims = self.runtime.do(write)
        except (StoreBusy, StoreUnavailable, StoreUnsafe, WorkerExists) as error:
            self.completer.put_back(done)
            self.event_buffer.put_back(told)
            self._hungry = self._hungry or claim
            self._bulk_wanted = self._bulk_wanted or bulk
            self._doubt = self._doubt or isinstance(error, StoreUnavailable)
            raise
        except Exception as error:
            log.warning("a batch could not be written (%s); finishing its %d runs one by one", error, len(done))
            self._hungry = True
            self._write_events(told)
            self.completer.finish_in_halves(done)
            # The cause may stop the next claim too.
            self._pause.wait(self.runtime.settings.tick.total_seconds())
            return
        self.event_buffer.written(told)
        self.completer.finished(done, lost)
        if limit > 0:
            counted = [one for one in claims if not self._is_bulk(one)]
            full = len(counted) == limit
            self._hungry = self._hungry or full
            self._backlog = full
            if self._cycles % OLDEST_EVERY:
                self._scan_cursor.claimed(counted, full=full)
        for one in claims:
            self._begin(one, asked)

    def _room(self, done: set[RunInFlight]) -> Mapping[str, int]:
        """How many more runs of a queue this worker may start, for the queues with a limit per worker."""
        held = Counter(running.lease.ticket.queue for running in self.in_flight.all() if running not in done)
        return {queue: most - held[queue] for queue, most in self._per_worker.items()}

    def _free(self, ended: int) -> int:
        """How many more runs this worker may have when `ended` of those in flight are finished."""
        # Read after `ended` was counted: a bulk operation that ends meanwhile makes this one too few, never too many.
        beside = 1 if self._bulk is not None and not self._bulk.ended else 0
        return self.concurrency + beside - len(self.in_flight) + ended

    def _takes_bulk(self) -> bool:
        """Whether to look for a bulk operation now: once a tick or when signalled. A worker does one at a time, beside
        the runs that it may have at once. One that serves their queue by name takes them like other runs."""
        if OPERATIONS in self.queues or not self._bulk_wanted or self.runtime.clock.elapsed() < self._bulk_at:
            return False
        bulk = self._bulk
        return bulk is None or self.in_flight.get(bulk.lease.run_id, bulk.lease.attempt) is not bulk

    def _is_bulk(self, claim: Claim) -> bool:
        return claim.lease.ticket.queue == OPERATIONS and OPERATIONS not in self.queues

    def _claim(self, tx: Transaction, limit: int, room: Mapping[str, int], *, bulk: bool) -> list[Claim]:
        jobs = self._startable()
        if not jobs or (limit <= 0 and not bulk):
            return []
        if self._named:
            workers.require(tx, self.id)
        self._cycles += 1
        claim = partial(
            claim_runs,
            tx,
            jobs=jobs,
            holder=self.id,
            lease_for=self.runtime.settings.lease,
            kill_grace=self.runtime.settings.kill_grace,
        )
        claims = claim([OPERATIONS], limit=1) if bulk else []
        if limit > 0:
            claims += claim(
                self.queues,
                limit=limit,
                oldest_first=self._cycles % OLDEST_EVERY == 0,
                room=room,
                scan_from=self._scan_cursor.at(self.runtime.clock.elapsed()),
            )
        return claims

    def _startable(self) -> Sequence[str]:
        """The jobs to claim: all of ours, but no async ones while the event loop is blocked."""
        if not self._dispatcher.loops.blocked:
            return self._jobs
        return [name for name in self._jobs if self.runtime.jobs[name].isolation != "async"]

    def _write_events(self, told: Told) -> None:
        """Write events of running runs in a transaction of their own."""
        try:
            self.runtime.do(lambda tx: self.event_buffer.write(tx, told))
        except (StoreBusy, StoreUnavailable):
            self.event_buffer.put_back(told)
        except Exception:
            log.exception("events of running runs could not be written and are lost")
            self.event_buffer.written(told)
        else:
            self.event_buffer.written(told)

    def _begin(self, claim: Claim, asked: float) -> None:
        settings, clock = self.runtime.settings, self.runtime.clock
        timeout, deadline_at = claim.policy.timeout, claim.lease.deadline_at
        running = RunInFlight(
            claim=claim,
            job=self.runtime.jobs[claim.lease.ticket.job],
            lease_until=asked + settings.lease.total_seconds(),
            # From the start that is written down: the commit's own time counts.
            deadline=None if deadline_at is None else clock.elapsed() + (deadline_at - clock.now()).total_seconds(),
        )
        if running.deadline is not None:
            running.last = running.deadline + (settings.kill_grace + settings.renew_every).total_seconds()
            running.extend(running.lease_until)
        if self._deadlines.too_late(running):
            # The reply took longer than the lease: another worker may have the run by now, so it must not start.
            log.warning("run %s: its claim was answered too late; it is released", running.lease.run_id)
            self._doubt = self._hungry = True
            return
        self.claimed += 1
        self.in_flight.take(running)
        if self._is_bulk(claim):
            self._bulk = running
        attempt_log.started(running)
        self._dispatcher.begin(running)
        if self._leaving:
            running.stop("shutdown", SHUTS_DOWN)
        if timeout is not None and timeout < timedelta(seconds=2):
            self._deadlines.look()

    def back_off(self, error: HoldfastError) -> None:
        """The database is locked or away: log it, record it with the next commit, and wait about a tick."""
        log.warning("worker: %s; trying again", error)
        if isinstance(error, StoreBusy):
            self.event_buffer.contended(error, at=self.runtime.clock.now())
        jitter = 0.5 + self.runtime.ids.fraction()
        self._pause.wait(self.runtime.settings.tick.total_seconds() * jitter)

    def _release_unknown(self) -> None:
        if count := self.completer.release_unknown():
            log.warning("%d runs whose claim was not answered were released", count)
        self._doubt = False

    def close(self) -> None:
        self._dispatcher.close()
        self.completer.close()
