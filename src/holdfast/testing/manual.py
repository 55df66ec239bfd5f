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

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.app import Holdfast
from holdfast.artifacts import artifacts
from holdfast.jobs import children
from holdfast.jobs.importing import refuse_import
from holdfast.orchestrator import build_requests, cancel_children, fan_out, promote, recover
from holdfast.orchestrator.rollup import Rollup
from holdfast.orchestrator.schedule import Scheduler
from holdfast.pipelines import stages
from holdfast.pipelines.plan import renumber
from holdfast.runs import results, steps, workers
from holdfast.runs.claim import Claim, claim_runs
from holdfast.runs.events import record
from holdfast.runs.finish import finish_runs
from holdfast.runs.lease import Renewal, renew_leases, require_lease
from holdfast.runs.outcomes import Outcome, Succeeded
from holdfast.runs.submission import Submission
from holdfast.store import caller_transaction
from holdfast.store.isolation import require_latest
from holdfast.store.transaction import Transaction
from holdfast.support.errors import LeaseLost
from holdfast.values.artifacts import Artifact
from holdfast.values.events import Event
from holdfast.values.runs import Result, Step
from holdfast.values.workers import WorkerInfo
from holdfast.worker.context import RunContext
from holdfast.worker.execute import Judge, execute

ROUNDS = 1000
NAME = "manual"


class Manual:
    """Moves the runs of one Holdfast, each move a call, in the caller's own thread."""

    def __init__(self, hf: Holdfast) -> None:
        self.hf = hf
        hf.start()
        self._timetable = Scheduler(hf.store, hf.scheduled, holder=NAME)

    def worker(
        self, name: str = NAME, *, queues: Sequence[str] = ("default",), jobs: Sequence[str] | None = None
    ) -> ManualWorker:
        """A worker of that name; it knows all jobs unless told which."""
        return ManualWorker(self.hf, name, queues=queues, jobs=jobs)

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
        self._timetable.forget()
        return self._timetable.keep(self.hf.clock.now())

    def tally(self) -> None:
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

    def __init__(self, hf: Holdfast, name: str, *, queues: Sequence[str], jobs: Sequence[str] | None) -> None:
        self.hf, self.name, self.queues = hf, name, list(queues)
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
        desk = _Desk(hf, claim)
        retry = job.options.policy.retry
        max_result_bytes = hf.settings.max_result_bytes
        context = RunContext(claim, desk, job=job, retry=retry, max_result_bytes=max_result_bytes, first=False)
        judge = Judge(hf.redactor, hf.ids, max_result_bytes=hf.settings.max_result_bytes)
        outcome = execute(job, claim, context, judge)
        if context.finishing:
            found = hf.snapshot(claim.lease.run_id)
            if found.ended and found.attempt == claim.lease.attempt:
                return Succeeded(found.result or "null")
        self.finish(claim, outcome)
        return outcome

    def live(self) -> list[WorkerInfo]:
        """Who is alive, as the database sees it."""
        return self.hf.read(workers.live)


class _Desk:
    """Writes at once, waits for nothing."""

    def __init__(self, hf: Holdfast, claim: Claim) -> None:
        self._hf, self._claim, self._lease = hf, claim, claim.lease
        self._numbers = itertools.count(1)

    def now(self) -> datetime:
        return self._hf.clock.now()

    def fraction(self) -> float:
        return self._hf.ids.fraction()

    def stopped(self) -> str | None:
        return None

    def wait(self, seconds: float) -> None:
        advance: Callable[[float], None] | None = getattr(self._hf.clock, "advance", None)
        if advance is not None:
            advance(seconds)

    def steps(self) -> dict[str, str]:
        return {step.name: step.result for step in self._hf.read(lambda tx: steps.of(tx, self._lease.run_id))}

    def results(self, run_ids: Sequence[str]) -> list[Result]:
        return self._hf.read(lambda tx: results.of(tx, run_ids))

    def inputs(self, what: str, names: Sequence[str]) -> dict[str, str]:
        return self._hf.read(lambda tx: stages.answer(tx, self._claim, what, names=names))

    def submit_child(self, submission: Submission, name: str) -> str:
        return self._hf.do(lambda tx: children.submit(tx, self._lease, submission, name=name, renumber=renumber))

    def remember(self, step: Step) -> None:
        numbered = replace(step, number=next(self._numbers))
        self._guarded(lambda tx: steps.insert(tx, [(self._lease.run_id, numbered)]))

    def forget(self, name: str) -> bool:
        return self._hf.do(lambda tx: steps.forget(tx, self._lease, name))

    def tell(self, kind: str, data: dict[str, Any], *, at: datetime | None = None) -> None:
        data = self._hf.redactor.data(data)
        event = Event(run_id=self._lease.run_id, kind=kind, attempt=self._lease.attempt, data=data, happened_at=at)
        self._guarded(lambda tx: record(tx, [event]))

    def finish(self, result: str, connection: Any) -> None:
        def write(tx: Transaction) -> None:
            require_latest(tx, "to finish a run")
            if finish_runs(tx, [(self._lease, Succeeded(result))], holder=self._lease.holder):
                raise LeaseLost(f"run {self._lease.run_id}: someone else has it")

        caller_transaction.within(self._hf.store, connection, write)

    def recall(self, name: str) -> Artifact | None:
        return artifacts.recall(self._hf.store, self._hf._artifact_store, self._claim, name)

    def scratch(self) -> tuple[str, Path]:
        return artifacts.scratch(self._hf._artifact_store, self._lease)

    def keep(self, name: str, content: bytes | Path, *, part: str | None = None) -> Artifact:
        hf, limit = self._hf, self._hf.settings.max_artifact_bytes
        return artifacts.keep(hf.store, hf._artifact_store, self._claim, name, content, part=part, max_bytes=limit)

    def _guarded(self, write: Callable[[Transaction], None]) -> None:
        def guarded(tx: Transaction) -> None:
            require_lease(tx, self._lease)
            write(tx)

        self._hf.do(guarded)
