"""The worker's loop: finish what is done and claim what is free, in one commit.

    claim ──▶ pool (threads, event loop, processes) ──▶ settled ──▶ finish + claim ──▶ …

Runs that end while a commit is under way are finished by the next one, so the busier the worker, the larger its
batches.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta

from holdfast.engine import Holdfast
from holdfast.jobs.registry import OPERATIONS
from holdfast.orchestrator import promote
from holdfast.runs import workers
from holdfast.runs.claim import Claim, claim_runs
from holdfast.runs.finish import finish_runs
from holdfast.runs.outcomes import Failed, Outcome, Release, Succeeded
from holdfast.store.dialects.base import Unstorable
from holdfast.store.notifier import Signal
from holdfast.store.transaction import Transaction
from holdfast.support.errors import HoldfastError, StoreBusy, StoreUnavailable, StoreUnsafe, WorkerExists
from holdfast.worker import attempt_log, completer
from holdfast.worker.attempt_log import FailureHooks
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.dispatch import Starter
from holdfast.worker.event_buffer import EventBuffer, Told
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.in_flight import InFlight, RunInFlight, began
from holdfast.worker.poll import ScanCursor
from holdfast.worker.run_services import StepWriter

log = logging.getLogger("holdfast.worker")

CANT_BE_STORED = (Unstorable, ValueError, TypeError, OverflowError)
LINGER, MOMENT = 4, 0.0005
SHUTS_DOWN = "its worker shuts down"
OLDEST_EVERY = 10  # so often a claim goes by age alone, so that priority starves no one


class Cycle:
    """What one worker writes, a commit at a time. `turn` is called by the worker's thread alone."""

    def __init__(
        self,
        hf: Holdfast,
        hand: InFlight,
        heartbeat: Heartbeat,
        watch: Deadlines,
        chronicle: EventBuffer,
        *,
        holder: str,
        queues: Sequence[str],
        jobs: Sequence[str],
        concurrency: int,
        named: bool,
    ) -> None:
        """`named`: its row in `workers` stands for a name, without which it may start nothing.

        The worker changes `queues` and `jobs` in place when more are declared.
        """
        self.hf, self.hand, self.id, self.queues, self.concurrency = hf, hand, holder, queues, concurrency
        self.bell = Signal()
        self.chronicle = chronicle
        self.claimed = 0
        self.handed_back = 0
        self._heartbeat, self._watch, self._named = heartbeat, watch, named
        self._jobs = jobs
        self._per_worker: Mapping[str, int] = hf.per_worker
        self._steered_at = 0.0
        self._hooks = FailureHooks(hf)
        self._starter = Starter(
            hf, self.chronicle, StepWriter(hf, holder), settle=self.settle, on_change=self.look, hand=hand
        )
        watch.loops = self._starter.loops
        self._settled: deque[tuple[RunInFlight, Outcome]] = deque()
        self._hungry = True
        self._closed = self._leaving = False
        self._backlog = False
        self._floors = ScanCursor()
        self._cycles = 0
        self._doubt = False
        self._lost: set[tuple[str, int]] = set()
        self._pause = threading.Event()

    @property
    def idle(self) -> bool:
        """Whether there is nothing in hand and nothing to write."""
        return not self.hand and not self._settled and not self.chronicle

    def look(self, *, steered: bool = False) -> None:
        """There may be something to claim; if `steered`, of what operators asked for."""
        self._hungry = True
        if steered:
            self._steered_at = 0.0
        self.bell.ring()

    def settle(self, running: RunInFlight, outcome: Outcome | None) -> None:
        """A run's work is over, or no longer ours (None)."""
        if not running.end():
            return
        if outcome is None:
            self._given_up(running)
        else:
            self._settled.append((running, outcome))
        if running.lease.ticket.queue in self._per_worker:
            self._hungry = True  # what it leaves is room of its queue, for which more may have waited
        self.bell.ring()

    def _given_up(self, running: RunInFlight) -> None:
        """No longer ours; its lease stands until it runs out, and an orchestrator decides by the run's policy."""
        self.hf.counting.add("lease_lost")
        self._lost.add((running.lease.run_id, running.lease.attempt))
        self.hand.give_up(running)

    def stop_claiming(self) -> None:
        """Start nothing more, from now on."""
        self._closed = True
        self.bell.ring()

    def hand_back(self) -> None:
        """Tell all that is in hand to stop, and what a commit under way may still bring."""
        self._closed = self._leaving = True
        for running in self.hand.all():
            running.stop("shutdown", SHUTS_DOWN)

    def turn(self) -> None:
        """One commit if there is something to write or to claim; else wait for a ring."""
        free = 0 if self._closed else self.concurrency - len(self.hand) + len(self._settled)
        # Who has not been heard for a while may go by an old time: its new leases could be over as they are made.
        claiming = free > 0 and (self._hungry or self._hands_on()) and self._heartbeat.fresh()
        if not self._settled and not claiming and not self.chronicle:
            self.bell.wait(self.hf.settings.tick.total_seconds())
            return
        if self._backlog:
            self._linger()
        try:
            if self._doubt:
                self._hand_back_unknown()
            self._commit(claim=claiming)
        except (StoreBusy, StoreUnavailable) as error:
            self.trouble(error)

    def _hands_on(self) -> bool:
        """Whether a run that has ended lets the next of its key go, in the same commit."""
        return any(running.lease.ticket.key is not None for running, _ in self._settled)

    def _linger(self) -> None:
        """In a backlog, let those that are about to end do so first: one commit for all of them."""
        for _ in range(LINGER):
            before = len(self._settled)
            if before >= len(self.hand):
                return
            self._pause.wait(MOMENT)
            if len(self._settled) == before:
                return

    def _commit(self, *, claim: bool) -> None:
        """Finish and claim in one transaction; if the claim fails, the finish is committed alone."""
        done = [self._settled.popleft() for _ in range(len(self._settled))]
        told = self.chronicle.take()
        limit = self.concurrency - len(self.hand) + len(done) if claim else 0
        room = self._room({running for running, _ in done}) if self._per_worker else {}
        if claim:
            self._hungry = False  # before looking: a ring from now on is for the next turn
        asked = self.hf.clock.elapsed()

        def write(tx: Transaction) -> tuple[set[str], list[Claim]]:
            nonlocal asked
            asked = began(tx, self.hf.clock)
            self.chronicle.write(tx, told)
            pairs = [(running.lease, outcome) for running, outcome in done]
            lost = finish_runs(tx, pairs, holder=self.id) if pairs else set()
            promote.hand_on(tx)
            return lost, [] if self._closed else self._claim(tx, limit, room)

        try:
            lost, claims = self.hf.do(write)
        except (StoreBusy, StoreUnavailable, StoreUnsafe, WorkerExists) as error:
            self._settled.extendleft(reversed(done))
            self.chronicle.put_back(told)
            self._hungry = self._hungry or claim
            self._doubt = self._doubt or isinstance(error, StoreUnavailable)
            raise
        except Exception as error:
            log.warning("a batch could not be written (%s); finishing its %d runs one by one", error, len(done))
            self._hungry = True
            self._tell_alone(told)
            self._finish_alone(done)
            self._pause.wait(self.hf.settings.tick.total_seconds())  # what stopped the claim may stop the next one too
            return
        self.chronicle.written(told)
        self._finished_runs(done, lost)
        if limit:
            full = len(claims) == limit
            self._hungry = self._hungry or full
            self._backlog = full
            if self._cycles % OLDEST_EVERY:
                self._floors.claimed(claims, full=full)
        for one in claims:
            self._begin(one, asked)

    def _room(self, done: set[RunInFlight]) -> Mapping[str, int]:
        """How many more of a queue this worker may run, where that has a bound."""
        held = Counter(running.lease.ticket.queue for running in self.hand.all() if running not in done)
        return {queue: most - held[queue] for queue, most in self._per_worker.items()}

    def _claim(self, tx: Transaction, limit: int, room: Mapping[str, int]) -> list[Claim]:
        jobs = self._startable()
        if limit <= 0 or not jobs:
            return []
        if self._named:
            workers.require(tx, self.id)
        self._cycles += 1
        return claim_runs(
            tx,
            self._served(),
            jobs=jobs,
            holder=self.id,
            limit=limit,
            lease_for=self.hf.settings.lease,
            kill_grace=self.hf.settings.kill_grace,
            oldest_first=self._cycles % OLDEST_EVERY == 0,
            room=room,
            floors=self._floors.at(self.hf.clock.elapsed()),
        )

    def _startable(self) -> Sequence[str]:
        """Our jobs; while the event loop is blocked, without those that would wait for it."""
        if not self._starter.loops.blocked:
            return self._jobs
        return [name for name in self._jobs if self.hf.jobs[name].isolation != "async"]

    def _served(self) -> Sequence[str]:
        """Our queues; before them, once a tick or when it was rung for, the one that operators' bulks go to."""
        elapsed = self.hf.clock.elapsed()
        if OPERATIONS in self.queues or elapsed < self._steered_at:
            return self.queues
        self._steered_at = elapsed + self.hf.settings.tick.total_seconds()
        return [OPERATIONS, *self.queues]

    def _finish_alone(self, done: Sequence[tuple[RunInFlight, Outcome]]) -> None:
        """Halve a batch that can't be written down to the run that can't; that one fails for it."""
        parts = deque([done] if done else [])
        while parts:
            part = parts.popleft()
            pairs = [(running.lease, outcome) for running, outcome in part]
            try:
                lost = self.hf.do(lambda tx, pairs=pairs: finish_runs(tx, pairs, holder=self.id))  # type: ignore[misc]
            except (StoreBusy, StoreUnavailable):
                self._settled.extendleft(reversed([one for left in (part, *parts) for one in left]))
                raise
            except Exception as error:
                if not isinstance(error, CANT_BE_STORED):
                    # Nothing is wrong with the outcomes: the database is, and they wait for it.
                    self._settled.extendleft(reversed([one for left in (part, *parts) for one in left]))
                    raise StoreUnavailable(f"outcomes could not be written: {error}") from error
                if len(part) > 1:
                    middle = len(part) // 2
                    parts.extendleft((part[middle:], part[:middle]))
                    continue
                [(running, outcome)] = part
                failed = Failed("RESULT_NOT_STORABLE", completer.refused(error))
                if outcome != failed:
                    parts.appendleft([(running, failed)])
                    continue
                log.exception("run %s: not even its failure can be written; its lease runs out", running.lease.run_id)
                self._given_up(running)
            else:
                self._finished_runs(part, lost)

    def _tell_alone(self, told: Told) -> None:
        try:
            self.hf.do(lambda tx: self.chronicle.write(tx, told))
        except (StoreBusy, StoreUnavailable):
            self.chronicle.put_back(told)
        except Exception:
            log.exception("events of running runs could not be written and are lost")
            self.chronicle.written(told)
        else:
            self.chronicle.written(told)

    def _begin(self, claim: Claim, asked: float) -> None:
        settings, clock = self.hf.settings, self.hf.clock
        timeout, deadline_at = claim.policy.timeout, claim.lease.deadline_at
        running = RunInFlight(
            claim=claim,
            job=self.hf.jobs[claim.lease.ticket.job],
            lease_until=asked + settings.lease.total_seconds(),
            # From the start that is written down: the commit's own time counts.
            deadline=None if deadline_at is None else clock.elapsed() + (deadline_at - clock.now()).total_seconds(),
        )
        if running.deadline is not None:
            running.last = running.deadline + (settings.kill_grace + settings.renew_every).total_seconds()
            running.extend(running.lease_until)
        if self._watch.too_late(running):
            # The reply took longer than the lease: someone else may have the run by now, so it must not start.
            log.warning("run %s: its claim was answered too late; it is handed back", running.lease.run_id)
            self._doubt = self._hungry = True
            return
        self.claimed += 1
        self.hand.take(running)
        attempt_log.started(running)
        self._starter.begin(running)
        if self._leaving:
            running.stop("shutdown", SHUTS_DOWN)
        if timeout is not None and timeout < timedelta(seconds=2):
            self._watch.look()

    def _finished_runs(self, done: Sequence[tuple[RunInFlight, Outcome]], lost: set[str]) -> None:
        for running, outcome in done:
            self.hand.drop(running)
            if running.lease.run_id in lost and (own := self._own_end(running)) is not None:
                outcome = own
            elif running.lease.run_id in lost:
                log.warning("run %s: its outcome came too late, someone else has it", running.lease.run_id)
                self.hf.counting.add("lease_lost")
                continue
            if isinstance(outcome, Release) and running.stopped == "shutdown":
                self.handed_back += 1
            attempt_log.ended(running, outcome)
            self._hooks.ended(running, outcome)

    def _own_end(self, running: RunInFlight) -> Outcome | None:
        """How a run ended that wrote its end itself, in a transaction of its own."""
        if not running.finishing:
            return None
        found = self.hf.snapshot(running.lease.run_id)
        ours = (found.state, found.attempt, found.holder) == ("succeeded", running.lease.attempt, self.id)
        return Succeeded(found.result or "null") if ours else None

    def trouble(self, error: HoldfastError) -> None:
        """The database is locked or away: say so now, record it with the next commit, try again at the next tick."""
        log.warning("worker: %s; trying again", error)
        if isinstance(error, StoreBusy):
            self.chronicle.contended(error, at=self.hf.clock.now())
        jitter = 0.5 + self.hf.ids.fraction()
        self._pause.wait(self.hf.settings.tick.total_seconds() * jitter)

    def _hand_back_unknown(self) -> None:
        if count := self.hf.do(lambda tx: completer.release_unknown(tx, self.hand, self._lost, holder=self.id)):
            log.warning("%d runs whose claim was not answered were handed back", count)
        self._doubt = False

    def close(self) -> None:
        self._starter.close()
        self._hooks.close()
