"""The worker's loop: store the outcomes of ended runs and claim ready runs, in one commit.

    claim ──▶ dispatcher (threads, event loop, processes) ──▶ completer ──▶ finish + claim ──▶ …

Outcomes that arrive during a commit wait for the next one, so a busier worker writes larger batches.
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
from holdfast.runs.claim import ClaimedRun, claim_runs
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
from holdfast.worker.event_buffer import Batch, EventBuffer
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.in_flight import InFlight, RunInFlight, transaction_start
from holdfast.worker.poll import ScanCursor
from holdfast.worker.run_services import StepWriter

log = logging.getLogger("holdfast.worker")

MORE_WAITS, MORE_WAIT = 4, 0.0005  # how often, and how many seconds each time, to wait for more outcomes
SHUTDOWN_REASON = "the worker shut down"
OLDEST_EVERY = 10  # every tenth claim ignores priorities, so that no run starves behind higher ones


class WorkerLoop:
    """Finishes and claims the runs of one worker, one commit at a time. Only the worker's thread calls `turn`."""

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
        """`named`: the worker has an exclusive name and must not claim once its row in `workers` is gone.

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
            on_room=self.want_claim,
        )
        self._dispatcher = Dispatcher(
            runtime,
            self.event_buffer,
            StepWriter(runtime, holder),
            complete=self.completer.complete,
            on_change=self.want_claim,
            in_flight=in_flight,
            artifact_store=declarations.artifact_store,
        )
        deadlines.loops = self._dispatcher.loops
        self._claim_wanted = True
        self._closed = self._releasing = False
        self._backlog = False
        self._scan_cursor = ScanCursor()
        self._cycles = 0
        self._unanswered_claims = False
        self._pause = threading.Event()

    @property
    def idle(self) -> bool:
        """Whether no run is in flight and nothing is left to write."""
        return not self.in_flight and not self.completer and not self.event_buffer

    def want_claim(self, *, bulk_now: bool = False) -> None:
        """Claim runs in the next turn. With `bulk_now`, also look for a bulk operation without waiting for the poll."""
        self._claim_wanted = self._bulk_wanted = True
        if bulk_now:
            self._bulk_at = 0.0
        self.signal.set()

    def stop_claiming(self) -> None:
        """Start no more runs from now on."""
        self._closed = True
        self.signal.set()

    def release(self) -> None:
        """Stop every run in flight, and every run that a commit in progress still claims."""
        self._closed = self._releasing = True
        for running in self.in_flight.all():
            running.stop("shutdown", SHUTDOWN_REASON)

    def turn(self) -> None:
        """Commit once if there is something to write or to claim; otherwise wait for the signal."""
        wanted = self._free(len(self.completer)) > 0 and (self._claim_wanted or self.completer.frees_a_key())
        # Without a fresh heartbeat our clock may be behind, and new leases could be expired from the start.
        claiming = not self._closed and (wanted or self._takes_bulk()) and self._heartbeat.fresh()
        if not self.completer and not claiming and not self.event_buffer:
            self.signal.wait(self.runtime.settings.poll_interval.total_seconds())
            return
        if self._backlog:
            self._wait_for_more()
        try:
            if self._unanswered_claims:
                self._release_unknown()
            self._commit(claim=claiming)
        except (StoreBusy, StoreUnavailable) as error:
            self.back_off(error)

    def _wait_for_more(self) -> None:
        """In a backlog, wait briefly for runs that are about to end, so that one commit stores all their outcomes."""
        for _ in range(MORE_WAITS):
            before = len(self.completer)
            if before >= len(self.in_flight):
                return
            self._pause.wait(MORE_WAIT)
            if len(self.completer) == before:
                return

    def _commit(self, *, claim: bool) -> None:
        """Finish and claim in one transaction. If an outcome can't be stored, finish the runs in smaller batches."""
        done = self.completer.take()
        buffered = self.event_buffer.take()
        limit = self._free(len(done)) if claim else 0
        bulk = claim and self._takes_bulk()
        room = self._room({running for running, _ in done}) if self._per_worker else {}
        # Reset before the claim, so that a signal during the claim leads to another turn.
        if limit > 0:
            self._claim_wanted = False
        if bulk:
            self._bulk_wanted = False
            self._bulk_at = self.runtime.clock.elapsed() + self.runtime.settings.poll_interval.total_seconds()
        leased_from = self.runtime.clock.elapsed()

        def write(tx: Transaction) -> tuple[set[str], list[ClaimedRun]]:
            nonlocal leased_from
            leased_from = transaction_start(tx, self.runtime.clock)
            self.event_buffer.write(tx, buffered)
            lost = self.completer.write(tx, done)
            promote.pass_on_key_locks(tx)
            return lost, [] if self._closed else self._claim(tx, limit, room, bulk=bulk)

        try:
            lost, claims = self.runtime.do(write)
        except (StoreBusy, StoreUnavailable, StoreUnsafe, WorkerExists) as error:
            self.completer.put_back(done)
            self.event_buffer.put_back(buffered)
            self._claim_wanted = self._claim_wanted or claim
            self._bulk_wanted = self._bulk_wanted or bulk
            self._unanswered_claims = self._unanswered_claims or isinstance(error, StoreUnavailable)
            raise
        except Exception as error:
            log.warning("could not write a batch (%s); finishing its %d runs in smaller batches", error, len(done))
            self._claim_wanted = True
            self._write_events(buffered)
            self.completer.finish_in_halves(done)
            # The same error may happen in the next claim.
            self._pause.wait(self.runtime.settings.poll_interval.total_seconds())
            return
        self.event_buffer.written(buffered, elapsed=self.runtime.clock.elapsed())
        self.completer.finished(done, lost)
        if limit > 0:
            counted = [one for one in claims if not self._is_bulk(one)]
            full = len(counted) == limit
            self._claim_wanted = self._claim_wanted or full
            self._backlog = full
            if self._cycles % OLDEST_EVERY:
                self._scan_cursor.claimed(counted, full=full)
        for one in claims:
            self._begin(one, leased_from)

    def _room(self, done: set[RunInFlight]) -> Mapping[str, int]:
        """For each queue with a limit per worker, return how many more of its runs this worker may start."""
        held = Counter(running.lease.entry.queue for running in self.in_flight.all() if running not in done)
        return {queue: most - held[queue] for queue, most in self._per_worker.items()}

    def _free(self, ended: int) -> int:
        """Return how many more runs this worker may claim once `ended` of those in flight are finished."""
        # `ended` was counted earlier. If a bulk operation has ended since, the result is one too low, never too high.
        bulk = 1 if self._bulk is not None and not self._bulk.ended else 0
        return self.concurrency + bulk - len(self.in_flight) + ended

    def _takes_bulk(self) -> bool:
        """Whether to look for a bulk operation now: once per poll interval, or when signalled.

        A worker executes one bulk operation at a time, in addition to `concurrency` runs. If the worker was given the
        queue of bulk operations by name, it treats them like other runs.
        """
        if OPERATIONS in self.queues or not self._bulk_wanted or self.runtime.clock.elapsed() < self._bulk_at:
            return False
        bulk = self._bulk
        return bulk is None or self.in_flight.get(bulk.lease.run_id, bulk.lease.claim) is not bulk

    def _is_bulk(self, claimed: ClaimedRun) -> bool:
        return claimed.lease.entry.queue == OPERATIONS and OPERATIONS not in self.queues

    def _claim(self, tx: Transaction, limit: int, room: Mapping[str, int], *, bulk: bool) -> list[ClaimedRun]:
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
        """Return the jobs to claim: all that we serve, without async ones while the event loop is blocked."""
        if not self._dispatcher.loops.blocked:
            return self._jobs
        return [name for name in self._jobs if self.runtime.jobs[name].isolation != "async"]

    def _write_events(self, buffered: Batch) -> None:
        """Write buffered events in a separate transaction."""
        try:
            self.runtime.do(lambda tx: self.event_buffer.write(tx, buffered))
        except (StoreBusy, StoreUnavailable):
            self.event_buffer.put_back(buffered)
        except Exception:
            log.exception("could not write events of running runs; they are lost")
            self.event_buffer.written(buffered, elapsed=self.runtime.clock.elapsed())
        else:
            self.event_buffer.written(buffered, elapsed=self.runtime.clock.elapsed())

    def _begin(self, claimed: ClaimedRun, leased_from: float) -> None:
        settings, clock = self.runtime.settings, self.runtime.clock
        timeout, deadline_at = claimed.policy.timeout, claimed.lease.deadline_at
        running = RunInFlight(
            claimed=claimed,
            job=self.runtime.jobs[claimed.lease.entry.job],
            lease_until=leased_from + settings.lease.total_seconds(),
            # Counted from the stored start, so it includes the time that the commit took.
            deadline=None if deadline_at is None else clock.elapsed() + (deadline_at - clock.now()).total_seconds(),
        )
        if running.deadline is not None:
            running.last = running.deadline + (settings.kill_grace + settings.renew_every).total_seconds()
            running.extend(running.lease_until)
        if self._deadlines.too_late(running):
            # The reply took about as long as the lease, so another worker may have the run soon. Don't start it here.
            log.warning("run %s: the reply to its claim came too late; releasing the run", running.lease.run_id)
            self._unanswered_claims = self._claim_wanted = True
            return
        self.claimed += 1
        self.in_flight.take(running)
        if self._is_bulk(claimed):
            self._bulk = running
        attempt_log.started(running)
        self._dispatcher.begin(running)
        if self._releasing:
            running.stop("shutdown", SHUTDOWN_REASON)
        if timeout is not None and timeout < timedelta(seconds=2):
            self._deadlines.recheck()

    def back_off(self, error: HoldfastError) -> None:
        """Log that the database is locked or unreachable, record it with the next commit, and wait a poll interval."""
        log.warning("worker: %s; retrying", error)
        if isinstance(error, StoreBusy):
            self.event_buffer.contended(error, at=self.runtime.clock.now())
        jitter = 0.5 + self.runtime.ids.fraction()
        self._pause.wait(self.runtime.settings.poll_interval.total_seconds() * jitter)

    def _release_unknown(self) -> None:
        if count := self.completer.release_unknown():
            log.warning("released %d runs because the reply to their claim was lost", count)
        self._unanswered_claims = False

    def close(self) -> None:
        self._dispatcher.close()
        self.completer.close()
