"""An engine that moves only when told: no threads, no sleeping, every move a call.

manual = Manual(hf)
process.submit(document_id="a")
manual.run_all()                          # do all there is to do, here and now
hf.get(run.id).state

worker = manual.worker("a")               # or move step by step
[claim] = worker.claim()
clock.advance(hf.settings.lease * 2)
manual.orchestrate()                      # promotes, and takes over what ran out
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
from holdfast.orchestrator.schedule import Scheduler
from holdfast.orchestrator.statistics import Rollup
from holdfast.runs import workers
from holdfast.runs.claim import Claim, claim_runs
from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import Renewal, renew_leases
from holdfast.runs.outcomes import Outcome, Succeeded
from holdfast.store.transaction import Transaction
from holdfast.support.errors import LeaseLost
from holdfast.values.workers import WorkerInfo
from holdfast.worker.context import RunContext, retry_of
from holdfast.worker.event_buffer import EventBuffer
from holdfast.worker.execute import Judge, execute
from holdfast.worker.in_flight import RunInFlight
from holdfast.worker.run_services import LocalRunServices, StepWriter

ROUNDS = 1000
NAME = "manual"


class Manual:
    """Moves the runs of one Holdfast, each move a call, in the caller's own thread."""

    def __init__(self, hf: Holdfast) -> None:
        self.hf = hf
        hf.start()
        self._scheduler = Scheduler(hf.store, hf.scheduled, holder=NAME)
        self._step_writers: dict[str, StepWriter] = {}

    def worker(
        self, name: str = NAME, *, queues: Sequence[str] = ("default",), jobs: Sequence[str] | None = None
    ) -> ManualWorker:
        """A worker of that name; it knows all jobs unless told which."""
        if name not in self._step_writers:
            self._step_writers[name] = StepWriter(self.hf, name)
        return ManualWorker(self.hf, name, queues=queues, jobs=jobs, step_writer=self._step_writers[name])

    def orchestrate(self, *, limit: int = 1000, takeover_wait: timedelta = timedelta(0)) -> int:
        """Everything an orchestrator would do now; how many runs moved.

        Expired leases are taken away at once. With `takeover_wait=hf.settings.takeover_wait` they are only marked the
        first time and taken away by a later call, as by a real orchestrator.
        """
        total = 0
        for _ in range(ROUNDS):
            taken = self.hf.do(lambda tx: recover.expired(tx, wait=takeover_wait, limit=limit))
            moved = self.promote(limit=limit) + len(taken)
            moved += self.schedule()
            total += moved
            if not moved:
                return total
        raise AssertionError(f"the orchestrator still found something to move after {ROUNDS} rounds")

    def promote(self, *, limit: int = 1000) -> int:
        """One round of what makes waiting runs ready."""
        moved = self.hf.do(lambda tx: promote.due(tx, limit=limit))
        cursor: tuple[str, str] | None = ("", "")
        while cursor is not None:
            cursor, ended = self.hf.do(partial(_needs, cursor=cursor, limit=limit))
            moved += ended  # who needed them may move in turn
        moved += self.hf.do(lambda tx: build_requests.settle(tx, limit=limit))
        moved += self.hf.do(lambda tx: fan_out.stages(tx, limit=limit))
        moved += self.hf.do(lambda tx: cancel_children.children(tx, limit=limit))
        self.hf.do(lambda tx: promote.looks(tx, limit=limit))
        moved += self.hf.do(lambda tx: promote.turns(tx, limit=limit))
        return moved + self.hf.do(lambda tx: promote.seen(tx, limit=limit))

    def schedule(self) -> int:
        """Decide the slots that are due, as a worker's process would; how many."""
        self._scheduler.forget()
        return self._scheduler.keep(self.hf.clock.now())

    def count_ended(self) -> None:
        """Count all that ended and whose time to be counted has come, as a worker's process would."""
        rollup = Rollup(self.hf.store, self.hf.clock)
        while rollup.count_slice():
            pass

    def run_all(self, *, limit: int = 10_000) -> int:
        """Promote, claim and execute in this thread until nothing more can start; how many attempts were made.

        Runs that are due later stay where they are: advance the clock and call it again.
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
        raise AssertionError(f"still not done after {limit} attempts")

    def _claim_one(self, queues: Sequence[str]) -> list[Claim]:
        """The next run that can start; whom a rate holds up goes to wait, and the one behind it is tried."""
        left = -1
        while not (claims := self.worker(queues=queues).claim(limit=1)):
            before, left = left, sum(queue.ready for queue in self.hf.queues.list())
            if left == before:
                break
        return claims


def _needs(tx: Transaction, *, cursor: tuple[str, str], limit: int) -> tuple[tuple[str, str] | None, int]:
    return promote.needs_after(tx, cursor, limit=limit), len(tx.ended)


class ManualWorker:
    """A worker that claims, renews and finishes when told."""

    def __init__(
        self, hf: Holdfast, name: str, *, queues: Sequence[str], jobs: Sequence[str] | None, step_writer: StepWriter
    ) -> None:
        self.hf, self.name, self.queues, self._step_writer = hf, name, list(queues), step_writer
        self.jobs = list(jobs) if jobs is not None else hf.jobs.served()

    def register(self, *, live_for: timedelta = timedelta(days=3650)) -> None:
        """Write this worker down as alive: slots can be triggered by hand only while a live worker would run them."""

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
                    seen_at=tx.now,
                    expires_at=tx.now + live_for,
                    stopping=False,
                ),
            )

        self.hf.do(register)

    def claim(self, limit: int = 1, *, oldest_first: bool = False) -> list[Claim]:
        """Start up to `limit` runs under our lease."""
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

    def renew(self, claim: Claim) -> Renewal:
        """Extend the lease, or raise LeaseLost."""
        settings = self.hf.settings
        renewed = self.hf.do(
            lambda tx: renew_leases(
                tx, [claim.lease], holder=self.name, lease_for=settings.lease, kill_grace=settings.kill_grace
            )
        )
        if not renewed:
            raise LeaseLost(f"run {claim.lease.run_id}: not renewed")
        return renewed[0]

    def finish(self, claim: Claim, outcome: Outcome | None = None) -> None:
        """End the attempt, or raise LeaseLost."""
        pair = (claim.lease, outcome if outcome is not None else Succeeded())
        if self.hf.do(lambda tx: finish_runs(tx, [pair], holder=self.name)):
            raise LeaseLost(f"run {claim.lease.run_id}: someone else has it")

    def work(self, claim: Claim) -> Outcome:
        """Execute a claimed run's function in this thread and finish it."""
        hf = self.hf
        job = hf.jobs[claim.lease.ticket.job]
        refuse_import(f"runs {job.name}")
        context = self._context(claim)
        judge = Judge(hf.redactor, hf.ids, max_result_bytes=hf.settings.max_result_bytes)
        outcome = execute(job, claim, context, judge)
        if context.finishing:
            found = hf.snapshot(claim.lease.run_id)
            if found.ended and found.attempt == claim.lease.attempt:
                return Succeeded(found.result or "null")
        self.finish(claim, outcome)
        return outcome

    def _context(self, claim: Claim) -> RunContext:
        hf, job = self.hf, self.hf.jobs[claim.lease.ticket.job]
        running = RunInFlight(claim=claim, job=job, lease_until=math.inf, deadline=None)
        services = ManualRunServices(hf, running, EventBuffer(self.name), self._step_writer, lambda: hf._artifact_store)
        return RunContext(
            claim,
            services,
            job=job,
            retry=retry_of(job, claim),
            max_result_bytes=hf.settings.max_result_bytes,
            first=claim.lease.attempt == 1,
        )

    def live(self) -> list[WorkerInfo]:
        """Who is alive, as the database sees it."""
        return self.hf.read(workers.live)


class ManualRunServices(LocalRunServices):
    """A worker's services, but events are written at once and nothing waits: a wait advances the clock."""

    def tell(self, kind: str, data: dict[str, Any], *, at: datetime | None = None) -> None:
        super().tell(kind, data, at=at)
        told = self._event_buffer.take()
        self._runtime.do(lambda tx: self._event_buffer.write(tx, told))

    def wait(self, seconds: float) -> None:
        advance: Callable[[float], None] | None = getattr(self._runtime.clock, "advance", None)
        if advance is not None:
            advance(seconds)

    def _may_wait(self) -> bool:
        return False  # a lock that this thread holds would never become free
