"""Manual: moves runs only when the test calls it, without threads and without sleeping.

manual = Manual(hf)
run = process.submit(document_id="a")
manual.run_all()                          # run everything that is due, in this thread
hf.get(run.id).state

worker = manual.worker("a")               # or move step by step
[claim] = worker.claim()
clock.advance(hf.settings.lease * 2)
manual.orchestrate()                      # promote runs, and recover runs whose lease has expired
worker.finish(claim, Succeeded("1"))      # LeaseLost
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from holdfast import __version__
from holdfast.app import Holdfast
from holdfast.jobs.importing import refuse_import
from holdfast.orchestrator import build_requests, cancel_children, fan_out, promote, recover
from holdfast.orchestrator.loop import Pulse, read_pulse
from holdfast.orchestrator.schedule import Scheduler
from holdfast.orchestrator.statistics import Rollup
from holdfast.runs import workers
from holdfast.runs.claim import ClaimedRun, claim_runs
from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import Renewal, renew_leases
from holdfast.runs.outcomes import Outcome, Succeeded
from holdfast.store.transaction import Transaction
from holdfast.support.errors import LeaseLost
from holdfast.values.workers import WorkerInfo
from holdfast.worker.context import RunContext, retry_of
from holdfast.worker.event_buffer import EventBuffer
from holdfast.worker.execute import OutcomeDecider, execute
from holdfast.worker.in_flight import RunInFlight
from holdfast.worker.run_services import LocalRunServices, StepWriter

ROUNDS = 1000
NAME = "manual"


class Manual:
    """Moves the runs of one Holdfast in the thread of the caller, one method call at a time."""

    def __init__(self, hf: Holdfast) -> None:
        self.hf = hf
        hf.start()
        self._scheduler = Scheduler(hf.store, hf.scheduled, holder=NAME)
        self._step_writers: dict[str, StepWriter] = {}

    def worker(
        self, name: str = NAME, *, queues: Sequence[str] = ("default",), jobs: Sequence[str] | None = None
    ) -> ManualWorker:
        """Return a worker of that name. It serves all jobs unless `jobs` is given."""
        if name not in self._step_writers:
            self._step_writers[name] = StepWriter(self.hf, name)
        return ManualWorker(self.hf, name, queues=queues, jobs=jobs, step_writer=self._step_writers[name])

    def orchestrate(self, *, limit: int = 1000, takeover_wait: timedelta = timedelta(0)) -> int:
        """Do everything that an orchestrator would do now, and return how many runs moved.

        Expired leases are removed at once. With `takeover_wait=hf.settings.takeover_wait` the first call only marks
        them and a later call removes them, as a real orchestrator does.
        """
        total = 0
        for _ in range(ROUNDS):
            pulse = self._pulse()
            moved = 0
            if pulse.expires_at is not None and pulse.expires_at < self.hf.clock.now():
                moved += len(self.hf.do(lambda tx: recover.expired(tx, wait=takeover_wait, limit=limit)))
            moved += self._promote(pulse, limit=limit)
            moved += self.schedule()
            total += moved
            if not moved:
                return total
        raise AssertionError(f"the orchestrator still moves runs after {ROUNDS} rounds")

    def promote(self, *, limit: int = 1000) -> int:
        """Do one round of the passes that make waiting runs ready, and return how many runs moved."""
        return self._promote(self._pulse(), limit=limit)

    def _pulse(self) -> Pulse:
        return self.hf.store.once(lambda tx: read_pulse(tx, queues=[], jobs=[], holder=NAME), write=False)

    def _promote(self, pulse: Pulse, *, limit: int) -> int:
        """Do the passes that have work. A pass may make work for a later one."""
        do, moved = self.hf.do, 0
        is_due = pulse.due_at is not None and pulse.due_at <= self.hf.clock.now()
        if is_due:
            moved += do(lambda tx: promote.due(tx, limit=limit))
        if pulse.dependencies:
            cursor: tuple[str, str] | None = ("", "")
            while cursor is not None:
                cursor, ended = do(partial(_check_dependencies, cursor=cursor, limit=limit))
                moved += ended  # runs that depend on these may move next
        if is_due or pulse.dependencies:
            pulse = self._pulse()
        if pulse.unchecked:
            moved += do(lambda tx: build_requests.resolve(tx, limit=limit))
        if pulse.unchecked or pulse.pending_actions:
            moved += do(lambda tx: fan_out.stages(tx, limit=limit))
        if pulse.unchecked or pulse.child_cancellations:
            moved += do(lambda tx: cancel_children.children(tx, limit=limit))
        if pulse.pending_actions or pulse.child_cancellations:
            pulse = self._pulse()
        if pulse.unchecked:
            do(lambda tx: promote.check_waiting(tx, limit=limit))
        if pulse.unchecked or pulse.open_key_locks:
            moved += do(lambda tx: promote.assign_key_locks(tx, limit=limit))
        if pulse.unchecked:
            moved += do(lambda tx: promote.mark_checked(tx, limit=limit))
        return moved

    def schedule(self) -> int:
        """Claim or skip the slots that are due, as a worker process would, and return how many."""
        self._scheduler.forget()
        return self._scheduler.keep(self.hf.clock.now())

    def count_ended(self) -> None:
        """Count the finished runs for statistics, as a worker process would."""
        rollup = Rollup(self.hf.store, self.hf.clock)
        while rollup.count_slice():
            pass

    def run_all(self, *, limit: int = 10_000) -> int:
        """Promote, claim and execute runs in this thread until none can start, and return the number of attempts.

        Runs that are due later stay queued: advance the clock and call it again.
        """
        done = 0
        while done < limit:
            self.orchestrate()
            queues = self.hf.read(lambda tx: [row["queue"] for row in tx.all("find_ready_queues")])
            claims = self._claim_one(queues)
            if not claims:
                return done
            self.worker(queues=queues).work(claims[0])
            done += 1
        raise AssertionError(f"runs can still start after {limit} attempts")

    def _claim_one(self, queues: Sequence[str]) -> list[ClaimedRun]:
        """Claim the next run that can start. A run that must wait for its rate is skipped."""
        if not queues:
            return []
        left = -1
        while not (claims := self.worker(queues=queues).claim(limit=1)):
            before, left = left, sum(queue.ready for queue in self.hf.queues.list())
            if left == before:
                break
        return claims


def _check_dependencies(tx: Transaction, *, cursor: tuple[str, str], limit: int) -> tuple[tuple[str, str] | None, int]:
    return promote.dependencies_after(tx, cursor, limit=limit), len(tx.ended)


class ManualWorker:
    """A worker that claims, renews and finishes runs when the test calls it."""

    def __init__(
        self, hf: Holdfast, name: str, *, queues: Sequence[str], jobs: Sequence[str] | None, step_writer: StepWriter
    ) -> None:
        self.hf, self.name, self.queues, self._step_writer = hf, name, list(queues), step_writer
        self.jobs = list(jobs) if jobs is not None else hf.jobs.served()

    def register(self, *, live_for: timedelta = timedelta(days=3650)) -> None:
        """Register this worker as alive. A slot can be triggered by hand only if a live worker would run it."""

        def register(tx: Transaction) -> None:
            workers.register(
                tx,
                WorkerInfo(
                    id=self.name,
                    host="manual",
                    pid=0,
                    version=__version__,
                    queues=self.queues,
                    jobs=self.jobs,
                    concurrency=1,
                    exclusive=None,
                    started_at=tx.now,
                    last_seen_at=tx.now,
                    expires_at=tx.now + live_for,
                    stopping=False,
                ),
            )

        self.hf.do(register)

    def claim(self, limit: int = 1, *, oldest_first: bool = False) -> list[ClaimedRun]:
        """Claim up to `limit` runs."""
        settings = self.hf.settings
        return self.hf.do(
            lambda tx: claim_runs(
                tx,
                self.queues,
                jobs=self.jobs,
                holder=self.name,
                limit=limit,
                lease_for=settings.lease,
                kill_grace=settings.kill_grace,
                oldest_first=oldest_first,
            )
        )

    def renew(self, claimed: ClaimedRun) -> Renewal:
        """Extend the lease, or raise LeaseLost."""
        settings = self.hf.settings
        renewed = self.hf.do(
            lambda tx: renew_leases(
                tx, [claimed.lease], holder=self.name, lease_for=settings.lease, kill_grace=settings.kill_grace
            )
        )
        if not renewed:
            raise LeaseLost(f"the lease of run {claimed.lease.run_id} was lost and can't be renewed")
        return renewed[0]

    def finish(self, claimed: ClaimedRun, outcome: Outcome | None = None) -> None:
        """End the attempt, or raise LeaseLost."""
        pair = (claimed.lease, outcome if outcome is not None else Succeeded())
        if self.hf.do(lambda tx: finish_runs(tx, [pair], holder=self.name)):
            raise LeaseLost(f"the lease of run {claimed.lease.run_id} was lost: a later claim has the run, or it ended")

    def work(self, claimed: ClaimedRun) -> Outcome:
        """Execute the function of a claimed run in this thread, and finish the run."""
        hf = self.hf
        job = hf.jobs[claimed.lease.entry.job]
        refuse_import(f"runs {job.name}")
        context = self._context(claimed)
        decider = OutcomeDecider(hf.redactor, hf.ids, max_result_bytes=hf.settings.max_result_bytes)
        outcome = execute(job, claimed, context, decider)
        if context.finishing:
            run = hf.snapshot(claimed.lease.run_id)
            if run.ended and run.claim == claimed.lease.claim:
                return Succeeded(run.result or "null")
        self.finish(claimed, outcome)
        return outcome

    def _context(self, claimed: ClaimedRun) -> RunContext:
        hf, job = self.hf, self.hf.jobs[claimed.lease.entry.job]
        running = RunInFlight(claimed=claimed, job=job, lease_until=math.inf, deadline=None)
        services = ManualRunServices(hf, running, EventBuffer(self.name), self._step_writer, lambda: hf._artifact_store)
        return RunContext(
            claimed,
            services,
            job=job,
            retry=retry_of(job, claimed),
            max_result_bytes=hf.settings.max_result_bytes,
            first=claimed.lease.claim == 1,
        )

    def live(self) -> list[WorkerInfo]:
        """Return the workers that are registered as alive."""
        return self.hf.read(workers.live)


class ManualRunServices(LocalRunServices):
    """Run services that write events at once and never sleep: a wait advances the clock."""

    def record_event(self, kind: str, data: dict[str, Any], *, at: datetime | None = None) -> None:
        super().record_event(kind, data, at=at)
        events = self._event_buffer.take()
        self._runtime.do(lambda tx: self._event_buffer.write(tx, events))

    def wait(self, seconds: float) -> None:
        advance: Callable[[float], None] | None = getattr(self._runtime.clock, "advance", None)
        if advance is not None:
            advance(seconds)

    def _may_wait(self) -> bool:
        return False  # waiting for a lock that this thread holds would never end
