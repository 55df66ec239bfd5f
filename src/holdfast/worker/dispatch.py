"""Start: hands a claimed run to a thread, the event loop or a process, and says what stopping means for each."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

from holdfast.engine import Holdfast
from holdfast.runs.outcomes import Cancelled, Failed, Outcome, Release, Succeeded, TimedOut, WaitForChildren
from holdfast.values.rates import rate_in_words
from holdfast.worker import tracing
from holdfast.worker.context import RunContext, retry_of
from holdfast.worker.event_buffer import EventBuffer
from holdfast.worker.event_loop import Gate, Loop, Loops, Standstill
from holdfast.worker.execute import Judge, aexecute, execute
from holdfast.worker.in_flight import InFlight, RunInFlight
from holdfast.worker.run_services import LocalRunServices, StepWriter
from holdfast.worker.threads import Threads

log = logging.getLogger("holdfast.worker")

STILL_RUNNING = (
    "may still be running, beside a retry or the next run of its key. Holdfast stores nothing more of it, but its "
    'other effects go on; isolation="process" kills it'
)

Settle = Callable[[RunInFlight, Outcome | None], None]


class Starter:
    def __init__(
        self,
        hf: Holdfast,
        chronicle: EventBuffer,
        writer: StepWriter,
        *,
        settle: Settle,
        on_change: Callable[[], None],
        hand: InFlight,
    ) -> None:
        """`on_change` is called when async runs can be started again."""
        self._hf, self._chronicle, self._writer, self._settle, self._hand = hf, chronicle, writer, settle, hand
        self._judge = Judge(hf.redactor, hf.ids, max_result_bytes=hf.settings.max_result_bytes)
        self._threads = Threads("holdfast-run")
        self.loops = Loops(
            "holdfast-loop",
            hf.clock,
            give_up_after=hf.settings.lease,
            on_block=self._blocked,
            on_change=on_change,
        )

    def begin(self, running: RunInFlight) -> None:
        match running.job.isolation:
            case "thread":
                self._in_thread(running)
            case "async":
                self._in_loop(running)
            case "process":
                self._in_process(running)
        if running.stopped is not None:
            running.interrupt()  # it was told before there was anyone to tell

    def close(self) -> None:
        self._threads.close()
        self.loops.close(wait=self._hf.settings.kill_grace.total_seconds())

    def _in_thread(self, running: RunInFlight) -> None:
        desk, context = self._context(running)

        def interrupt() -> None:
            # A thread can't be killed: its run ends while the function may go on.
            desk.interrupted()
            self._settle(running, self._told(running, f"its function {STILL_RUNNING}"))

        def work() -> None:
            running.executing = True
            try:
                if running.ended:
                    return  # stopped before a thread was free
                with tracing.attempt(running.claim, self._hf.redactor) as span:
                    outcome = self._or_told(running, execute(running.job, running.claim, context, self._judge))
                    tracing.ended(span, outcome)
            finally:
                self._hand.returned(running)
            self._settle(running, outcome)

        running.interrupt = interrupt
        self._threads.run(work)

    def _in_loop(self, running: RunInFlight) -> None:
        desk, context = self._context(running)
        task: asyncio.Task[Any] | None = None
        gate = Gate()

        async def work(loop: Loop) -> None:
            nonlocal task
            task = asyncio.current_task()
            if running.stopped is not None:
                loop.excuse(running)
                self._settle(running, self._told(running, "it had not begun"))
                return
            # Cancelling ends the job's function, not this one: whatever it came to is settled.
            running.executing = True
            try:
                with tracing.attempt(running.claim, self._hf.redactor) as span:
                    outcome = await gate.through(aexecute(running.job, running.claim, context, self._judge))
                    loop.excuse(running)
                    told = self._or_told(running, outcome)
                    tracing.ended(span, told)
            finally:
                self._hand.returned(running)
            self._settle(running, told)

        loop = self.loops.run(running, work)

        def cancel() -> None:
            if gate.shut and task is not None:
                gate.shut = False
                task.cancel()

        def interrupt() -> None:
            desk.interrupted()
            gate.shut = True
            loop.call(cancel)
            lingering = threading.Timer(self._hf.settings.kill_grace.total_seconds(), linger)
            lingering.daemon = True
            lingering.start()

        def linger() -> None:
            what = "its task was cancelled but has not ended; it"
            if gate.shut and not running.ended:
                # The loop has not come to cancel it: something blocks the loop. It takes no step any more.
                self.loops.suspect(loop)
                loop.excuse(running)
                if where := loop.blocked_at(running):
                    what = f"it blocks the event loop at {where}, and"
            elif running.stopped == "blocked":
                return  # it is ending; released now, it would run beside its next attempt
            self._settle(running, self._told(running, f"{what} {STILL_RUNNING}"))

        running.interrupt = interrupt

    def _in_process(self, running: RunInFlight) -> None:
        from holdfast.worker.isolation.launch import Child

        desk, _ = self._context(running)
        child = Child(self._hf, running, desk, self._judge, self._hand.guardian.board)

        def work() -> None:
            with tracing.attempt(running.claim, self._hf.redactor) as span:
                outcome = self._or_told(running, *child.run())
                tracing.ended(span, outcome)
            self._settle(running, outcome)

        running.interrupt = child.stop
        running.renewed = child.renewed
        self._threads.run(work)

    def _context(self, running: RunInFlight) -> tuple[LocalRunServices, RunContext]:
        desk = LocalRunServices(self._hf, running, self._chronicle, self._writer)
        claim = running.claim
        retry = retry_of(running.job, claim)
        first = claim.lease.attempt == 1
        context = RunContext(
            claim,
            desk,
            job=running.job,
            retry=retry,
            max_result_bytes=self._hf.settings.max_result_bytes,
            first=first,
        )
        return desk, context

    def _blocked(self, standstill: Standstill) -> None:
        log.warning("%s; other async runs of this worker wait for it", standstill)
        if standstill.blocker is not None:
            data = self._hf.redactor.data({"where": standstill.where, "stack": standstill.stack})
            self._chronicle.tell(standstill.blocker.lease, "LOOP_BLOCKED", data, at=self._hf.clock.now())

    def _or_told(self, running: RunInFlight, outcome: Outcome, what: str = "it stopped when told to") -> Outcome | None:
        """What the work itself came to, unless it was stopped from outside and has no result."""
        if running.stopped is None:
            return outcome
        if running.stopped in ("cancel", "shutdown", "blocked") and isinstance(outcome, Succeeded):
            return outcome
        if running.stopped in ("shutdown", "blocked") and isinstance(outcome, WaitForChildren):
            return outcome
        return self._told(running, what)

    def _told(self, running: RunInFlight, what: str) -> Outcome | None:
        """What being told to stop means for the run."""
        claim = running.claim
        match running.stopped:
            case "timeout":
                error = f"{claim.policy.timed_out}; {what}"
                if claim.policy.on_timeout == "retry" and claim.lease.ticket.tries < claim.policy.max_attempts:
                    return self._judge.later(claim, error)
                return TimedOut(error)
            case "cancel":
                return Cancelled(f"{running.reason}; {what}")
            case "shutdown" if claim.policy.on_shutdown == "fail":
                grace = rate_in_words(self._hf.settings.shutdown_grace)
                error = f"{running.reason}, and the run did not finish within its shutdown grace ({grace}); {what}"
                return Failed("PROCESS_TERMINATED", error)
            case "shutdown" | "blocked":
                return Release(running.reason)
            case _:
                return None
