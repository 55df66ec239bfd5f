"""The worker's loop: finish what is done and claim what is free, in one commit.

    claim ──▶ pool (threads, event loop, processes) ──▶ settled ──▶ finish + claim ──▶ …

Runs that end while a commit is under way are finished by the next one, so the busier the worker, the larger its
batches. Beside the loop: a heartbeat that renews, a watch that stops, an orchestrator that moves.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal

from holdfast import leases, outcomes, workers
from holdfast.engine import Holdfast
from holdfast.errors import HoldfastError, StoreBusy, StoreUnavailable, WorkerExists
from holdfast.leases import Claim
from holdfast.orchestrator.loop import Orchestrator
from holdfast.outcomes import Failed, HandBack, Outcome
from holdfast.store.transaction import Transaction
from holdfast.wakeups import Bell
from holdfast.worker import doubts, locks
from holdfast.worker.chronicle import Chronicle
from holdfast.worker.context import RunLog
from holdfast.worker.desk import StepWriter
from holdfast.worker.floors import Floors
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.hooks import Hooks
from holdfast.worker.listen import Ear
from holdfast.worker.look import Look
from holdfast.worker.running import Hand, Running, began
from holdfast.worker.start import Starter
from holdfast.worker.watch import Watch

log = logging.getLogger("holdfast.worker")

Ended = Literal["drained", "handed_back"]
OLDEST_EVERY = 10  # so often a claim goes by age alone, so that priority starves no one


class Worker:
    """Runs jobs of one Holdfast until it is told to stop.

    queues       which queues it serves, the first one first
    concurrency  how many runs at once
    exclusive    a name that only one live worker may have
    drain        stop by itself when there is nothing left to do
    """

    def __init__(
        self,
        hf: Holdfast,
        *,
        queues: Sequence[str] = ("default",),
        concurrency: int | None = None,
        exclusive: str | None = None,
        drain: bool = False,
    ) -> None:
        self.hf, self.queues, self.exclusive, self.drain = hf, list(queues), exclusive, drain
        self.concurrency = concurrency or hf.settings.concurrency
        self.id = hf.ids.holder(exclusive or "worker")
        self.hand = Hand()
        self.bell = Bell()
        self.chronicle = Chronicle(self.id)
        self.claimed = 0
        self._settled: deque[tuple[Running, Outcome]] = deque()
        self._hungry = True
        self._floors = Floors()
        self._cycles = 0
        self._doubt = False
        self._lost: set[tuple[str, int]] = set()
        self._stopping = threading.Event()
        self._stopped = threading.Event()
        self._handed_back = 0
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Take the locks, recover what a predecessor left, and begin in a thread."""
        hf = self.hf
        store = hf.store
        self._jobs = hf.jobs.names()
        self._lock = locks.take(hf, self)
        self._heartbeat = Heartbeat(store, self.hand, hf.settings, hf.clock, holder=self.id)
        self._watch = Watch(self.hand, hf.clock, lease=hf.settings.lease)
        self._hooks = Hooks(hf)
        self._starter = Starter(hf, self.chronicle, StepWriter(hf, self.id), settle=self.settle)
        self._orchestrator = Orchestrator(
            store,
            hf.settings,
            hf.clock,
            look=Look(
                hf,
                self.hand,
                self._heartbeat,
                queues=self.queues,
                holder=self.id,
                register=lambda: locks.register(hf, self),
            ),
            may_recover=self._heartbeat.fresh,
            on_pulse=self._on_pulse,
        )
        self._ear = Ear(store, hf.wakeups, listen=hf.settings.listen)
        self._run_log = RunLog(
            lambda run_id, attempt: self.hand.get(run_id, attempt) is not None,
            level=getattr(logging, hf.settings.log_level.upper()),
        )
        logging.getLogger().addHandler(self._run_log)
        # The root is at WARNING where no one has set up logging; what a job says by ctx.log is kept all the same.
        logging.getLogger("holdfast.run").setLevel(self._run_log.level)
        self._leave = hf.wakeups.listen(self._heard)
        self._orchestrating = threading.Thread(
            target=self._orchestrator.run, args=(self._stopped,), name="holdfast-orchestrator", daemon=True
        )
        self._thread = threading.Thread(target=self._run, name="holdfast-worker", daemon=True)
        self._heartbeat.start()
        self._watch.start()
        self._ear.start()
        self._orchestrating.start()
        self._thread.start()

    def stop(self, *, grace: timedelta | None = None) -> Ended:
        """Claim no more, let running work finish within the grace, hand back the rest, release everything."""
        self.request_stop()
        if not self._drained(grace if grace is not None else self.hf.settings.shutdown_grace):
            self._hand_back()
        return self.join()

    def request_stop(self) -> None:
        """Claim no more."""
        self._stopping.set()
        self.bell.ring()

    def join(self, timeout: float | None = None) -> Ended:
        """Wait until it has stopped; raises what stopped it, if that was an error."""
        assert self._thread is not None
        self._thread.join(timeout)
        if self._failure is not None:
            raise self._failure
        return "handed_back" if self._handed_back else "drained"

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def settle(self, running: Running, outcome: Outcome | None) -> None:
        """A run's work is over, or no longer ours (None)."""
        if not running.end():
            return
        if outcome is None:
            self._given_up(running)
        else:
            self._settled.append((running, outcome))
        self.bell.ring()

    def _given_up(self, running: Running) -> None:
        """No longer ours; its lease stands until it runs out, and an orchestrator decides by the run's policy."""
        self._lost.add((running.lease.run_id, running.lease.attempt))
        self.hand.drop(running)

    # The loop

    def _run(self) -> None:
        try:
            while not self._finished():
                self._turn()
        except BaseException as error:
            # Our own errors say what to do in a line; of anything else we want to know where it came from.
            log.error("the worker stops: %s", error, exc_info=not isinstance(error, HoldfastError))
            self._failure = error
        finally:
            self._close()

    def _finished(self) -> bool:
        idle = not self.hand and not self._settled and not self.chronicle
        return idle and (self._stopping.is_set() or (self.drain and self._nothing_left()))

    def _turn(self) -> None:
        """One commit if there is something to write or to claim; else wait for a ring."""
        free = 0 if self._stopping.is_set() else self.concurrency - len(self.hand) + len(self._settled)
        # Who has not been heard for a while may go by an old time: its new leases could be over as they are made.
        claiming = free > 0 and self._hungry and self._heartbeat.fresh()
        if not self._settled and not claiming and not self.chronicle:
            self.bell.wait(self.hf.settings.tick.total_seconds())
            return
        try:
            if self._doubt:
                self._hand_back_unknown()
            self._commit(claim=claiming)
        except (StoreBusy, StoreUnavailable) as error:
            self._trouble(error)

    def _commit(self, *, claim: bool) -> None:
        """Finish and claim in one transaction; if the claim fails, the finish is committed alone."""
        done = [self._settled.popleft() for _ in range(len(self._settled))]
        told = self.chronicle.take()
        limit = self.concurrency - len(self.hand) + len(done) if claim else 0
        if claim:
            self._hungry = False  # before looking: a ring from now on is for the next turn
        asked = self.hf.clock.elapsed()

        def write(tx: Transaction) -> tuple[set[str], list[Claim]]:
            nonlocal asked
            asked = began(tx, self.hf.clock)
            self.chronicle.write(tx, told)
            pairs = [(running.lease, outcome) for running, outcome in done]
            lost = outcomes.finish(tx, pairs, holder=self.id) if pairs else set()
            return lost, self._claim(tx, limit)

        try:
            lost, claims = self.hf.do(write)
        except (StoreBusy, StoreUnavailable, WorkerExists) as error:
            self._settled.extendleft(reversed(done))
            self.chronicle.put_back(told)
            self._hungry = self._hungry or claim
            self._doubt = self._doubt or isinstance(error, StoreUnavailable)
            raise
        except Exception as error:
            log.warning("a batch could not be written (%s); finishing its %d runs one by one", error, len(done))
            self._hungry = True
            self._finish_alone(done)
            return
        self._finished_runs(done, lost)
        if limit:
            full = len(claims) == limit
            self._hungry = self._hungry or full
            if self._cycles % OLDEST_EVERY:
                self._floors.claimed(claims, full=full)
        for one in claims:
            self._begin(one, asked)

    def _claim(self, tx: Transaction, limit: int) -> list[Claim]:
        if limit <= 0:
            return []
        if self.exclusive is not None or self.hf.settings.solo:
            workers.require(tx, self.id)
        self._cycles += 1
        return leases.claim(
            tx,
            self.queues,
            jobs=self._jobs,
            holder=self.id,
            limit=limit,
            lease_for=self.hf.settings.lease,
            kill_grace=self.hf.settings.kill_grace,
            oldest_first=self._cycles % OLDEST_EVERY == 0,
            floors=self._floors.at(self.hf.clock.elapsed()),
        )

    def _finish_alone(self, done: Sequence[tuple[Running, Outcome]]) -> None:
        """Halve a batch that can't be written down to the run that can't; that one fails for it."""
        parts = deque([done] if done else [])
        while parts:
            part = parts.popleft()
            pairs = [(running.lease, outcome) for running, outcome in part]
            try:
                lost = self.hf.do(lambda tx, pairs=pairs: outcomes.finish(tx, pairs, holder=self.id))  # type: ignore[misc]
            except (StoreBusy, StoreUnavailable):
                self._settled.extendleft(reversed([one for left in (part, *parts) for one in left]))
                raise
            except Exception as error:
                if len(part) > 1:
                    middle = len(part) // 2
                    parts.extendleft((part[middle:], part[:middle]))
                    continue
                [(running, outcome)] = part
                failed = Failed("RESULT_NOT_STORABLE", doubts.refused(error))
                if outcome != failed:
                    parts.appendleft([(running, failed)])
                    continue
                log.exception("run %s: not even its failure can be written; its lease runs out", running.lease.run_id)
                self._given_up(running)
            else:
                self._finished_runs(part, lost)

    def _begin(self, claim: Claim, asked: float) -> None:
        settings, clock = self.hf.settings, self.hf.clock
        timeout, deadline_at = claim.policy.timeout, claim.lease.deadline_at
        running = Running(
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
        self._starter.begin(running)
        if timeout is not None and timeout < timedelta(seconds=2):
            self._watch.look()

    def _finished_runs(self, done: Sequence[tuple[Running, Outcome]], lost: set[str]) -> None:
        for running, outcome in done:
            self.hand.drop(running)
            if running.lease.run_id in lost:
                log.warning("run %s: its outcome came too late, someone else has it", running.lease.run_id)
            else:
                if isinstance(outcome, HandBack):
                    self._handed_back += 1
                self._hooks.ended(running, outcome)

    def _trouble(self, error: HoldfastError) -> None:
        """The database is locked or away: say so now, record it with the next commit, try again at the next tick."""
        log.warning("worker: %s; trying again", error)
        if isinstance(error, StoreBusy):
            self.chronicle.note(
                "SCHEDULER_CONTENTION", {"error": str(error), "worker": self.id}, at=self.hf.clock.now()
            )
        jitter = 0.5 + self.hf.ids.fraction()
        self._stopped.wait(self.hf.settings.tick.total_seconds() * jitter)

    def _hand_back_unknown(self) -> None:
        if count := self.hf.do(lambda tx: doubts.hand_back_unknown(tx, self.hand, self._lost, holder=self.id)):
            log.warning("%d runs whose claim was not answered were handed back", count)
        self._doubt = False

    # Rings

    def _heard(self, rung: set[str], ended: list[str]) -> None:
        if "" in rung or not rung.isdisjoint(self.queues):
            self._hungry = True
            self.bell.ring()
        if "cancels" in rung or "" in rung:
            self._orchestrator.bell.ring()
        self._orchestrator.heard(rung, ended)

    def _on_pulse(self, pulse: workers.Pulse) -> None:
        if pulse.ready:
            self._hungry = True
            self.bell.ring()
        if pulse.cancels:
            self._cancel_requested()

    def _cancel_requested(self) -> None:
        for row in self.hf.read(lambda tx: tx.all("find_cancels", holder=self.id)):
            running = self.hand.get(row["run_id"], row["attempt"])
            if running is not None:
                running.stop("cancel", row["cancel_reason"] or "cancelled")

    # The end

    def _nothing_left(self) -> bool:
        """For `drain`: nothing is ready, due or on its way for us."""
        try:
            left = self.hf.read(lambda tx: tx.one("anything_left", queues=self.queues, jobs=self._jobs, now=tx.now))
        except (StoreBusy, StoreUnavailable) as error:
            self._trouble(error)
            return False
        return left is None

    def _drained(self, grace: timedelta) -> bool:
        give_up_at = self.hf.clock.elapsed() + grace.total_seconds()
        while self.alive and self.hf.clock.elapsed() < give_up_at:
            assert self._thread is not None
            self._thread.join(min(0.05, grace.total_seconds()))
        return not self.alive

    def _hand_back(self) -> None:
        for running in self.hand.all():
            running.stop("shutdown", "its worker shuts down")

    def _close(self) -> None:
        for running in self.hand.all():  # only where an error stopped us
            running.stop("lost", "its worker has stopped")
        self._stopped.set()
        self._orchestrator.bell.ring()
        self._leave()
        logging.getLogger().removeHandler(self._run_log)
        self._ear.stop()
        self._orchestrating.join(timeout=5)
        self._heartbeat.stop()
        self._watch.stop()
        self._starter.close()
        self._hooks.close()
        try:
            self.hf.do(lambda tx: workers.remove(tx, self.id))
        except Exception as error:
            log.warning("the worker's row could not be removed: %s", error)
        self._lock.release()
