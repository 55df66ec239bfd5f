"""Dispatch: starts a claimed run in a thread, the event loop or a process, and decides its outcome if it is stopped."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

from holdfast.artifacts.backends.base import ArtifactStore
from holdfast.runs.outcomes import Cancelled, Failed, Outcome, Release, Succeeded, TimedOut, WaitForChildren
from holdfast.runtime import Runtime
from holdfast.values.rates import rate_in_words
from holdfast.worker import tracing
from holdfast.worker.context import RunContext, retry_of
from holdfast.worker.event_buffer import EventBuffer
from holdfast.worker.event_loop import Blockage, Gate, Loop, Loops
from holdfast.worker.execute import OutcomeDecider, aexecute, execute
from holdfast.worker.in_flight import InFlight, RunInFlight
from holdfast.worker.run_services import LocalRunServices, StepWriter
from holdfast.worker.threads import Threads

log = logging.getLogger("holdfast.worker")

STILL_RUNNING = (
    "may still be running, even at the same time as a retry or the next run of its key. "
    'Holdfast stores nothing more from it. A job with isolation="process" is killed instead'
)

Complete = Callable[[RunInFlight, Outcome | None], None]


class Dispatcher:
    """Starts the runs of one worker. Each run ends with a call of `complete`."""

    def __init__(
        self,
        runtime: Runtime,
        event_buffer: EventBuffer,
        writer: StepWriter,
        *,
        complete: Complete,
        on_change: Callable[[], None],
        in_flight: InFlight,
        artifact_store: Callable[[], ArtifactStore],
    ) -> None:
        """`on_change` is called when async runs can start again."""
        self._runtime, self._event_buffer, self._writer = runtime, event_buffer, writer
        self._complete, self._in_flight, self._artifact_store = complete, in_flight, artifact_store
        self._decider = OutcomeDecider(
            runtime.redactor, runtime.ids, max_result_bytes=runtime.settings.max_result_bytes
        )
        self._threads = Threads("holdfast-run")
        self.loops = Loops(
            "holdfast-loop",
            runtime.clock,
            give_up_after=runtime.settings.lease,
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
            running.interrupt()  # it was stopped before `interrupt` was set

    def close(self) -> None:
        self._threads.close()
        self.loops.close(wait=self._runtime.settings.kill_grace.total_seconds())

    def _in_thread(self, running: RunInFlight) -> None:
        services, context = self._context(running)

        def interrupt() -> None:
            # A thread can't be killed, so the run ends although the function may still be executing.
            services.interrupted()
            self._complete(running, self._stopped_outcome(running, f"the function {STILL_RUNNING}"))

        def work() -> None:
            running.executing = True
            try:
                if running.ended:
                    return  # stopped before a thread was free
                with tracing.attempt(running.claimed, self._runtime.redactor) as span:
                    outcome = self._outcome_or_stopped(
                        running, execute(running.job, running.claimed, context, self._decider)
                    )
                    tracing.ended(span, outcome)
            finally:
                self._in_flight.returned(running)
            self._complete(running, outcome)

        running.interrupt = interrupt
        self._threads.run(work)

    def _in_loop(self, running: RunInFlight) -> None:
        services, context = self._context(running)
        task: asyncio.Task[Any] | None = None
        gate = Gate()

        async def work(loop: Loop) -> None:
            nonlocal task
            task = asyncio.current_task()
            if running.stopped is not None:
                loop.release_if_starved(running)
                self._complete(running, self._stopped_outcome(running, "the function had not started"))
                return
            # Cancelling ends the job's function but not this coroutine, which still reports an outcome.
            running.executing = True
            try:
                with tracing.attempt(running.claimed, self._runtime.redactor) as span:
                    finished = await gate.through(aexecute(running.job, running.claimed, context, self._decider))
                    loop.release_if_starved(running)
                    outcome = self._outcome_or_stopped(running, finished)
                    tracing.ended(span, outcome)
            finally:
                self._in_flight.returned(running)
            self._complete(running, outcome)

        loop = self.loops.run(running, work)

        def cancel() -> None:
            if gate.closed and task is not None:
                gate.closed = False
                task.cancel()

        def interrupt() -> None:
            services.interrupted()
            gate.closed = True
            loop.call(cancel)
            timer = threading.Timer(self._runtime.settings.kill_grace.total_seconds(), give_up)
            timer.daemon = True
            timer.start()

        def give_up() -> None:
            what = "the task was cancelled but has not ended; it"
            if gate.closed and not running.ended:
                # Something blocks the loop, so the task is not cancelled yet; the gate stops it before its next step.
                self.loops.check_blocked(loop)
                loop.release_if_starved(running)
                if where := loop.blocked_at(running):
                    what = f"the function blocks the event loop at {where} and"
            elif running.stopped == "blocked":
                return  # the task is ending; if the run is released now, its next attempt could overlap the task
            self._complete(running, self._stopped_outcome(running, f"{what} {STILL_RUNNING}"))

        running.interrupt = interrupt

    def _in_process(self, running: RunInFlight) -> None:
        from holdfast.worker.isolation.launch import Child

        services, _ = self._context(running)
        child = Child(self._runtime, running, services, self._decider, self._in_flight.guardian.memory)

        def work() -> None:
            with tracing.attempt(running.claimed, self._runtime.redactor) as span:
                outcome = self._outcome_or_stopped(running, *child.run())
                tracing.ended(span, outcome)
            self._complete(running, outcome)

        running.interrupt = child.stop
        running.renewed = child.renewed
        self._threads.run(work)

    def _context(self, running: RunInFlight) -> tuple[LocalRunServices, RunContext]:
        services = LocalRunServices(self._runtime, running, self._event_buffer, self._writer, self._artifact_store)
        claimed = running.claimed
        retry = retry_of(running.job, claimed)
        first = claimed.lease.claim == 1
        context = RunContext(
            claimed,
            services,
            job=running.job,
            retry=retry,
            max_result_bytes=self._runtime.settings.max_result_bytes,
            first=first,
        )
        return services, context

    def _blocked(self, blockage: Blockage) -> None:
        log.warning("%s; the other async runs of this worker can't continue", blockage)
        if blockage.blocker is not None:
            data = self._runtime.redactor.data({"where": blockage.where, "stack": blockage.stack})
            self._event_buffer.add(blockage.blocker.lease, "LOOP_BLOCKED", data, at=self._runtime.clock.now())

    def _outcome_or_stopped(
        self, running: RunInFlight, outcome: Outcome, what: str = "the function stopped"
    ) -> Outcome | None:
        """Return the outcome of the function, or of the stop if the run was stopped.

        A success still counts after a cancel, a shutdown or a blocked event loop, but not after a timeout.
        """
        if running.stopped is None:
            return outcome
        if running.stopped in ("cancel", "shutdown", "blocked") and isinstance(outcome, Succeeded):
            return outcome
        if running.stopped in ("shutdown", "blocked") and isinstance(outcome, WaitForChildren):
            return outcome
        return self._stopped_outcome(running, what)

    def _stopped_outcome(self, running: RunInFlight, what: str) -> Outcome | None:
        """Return the outcome of a run that was stopped; None if its lease is lost. `what` is added to the error."""
        claimed = running.claimed
        match running.stopped:
            case "timeout":
                error = f"{claimed.policy.timed_out}; {what}"
                if claimed.policy.on_timeout == "retry" and claimed.lease.entry.attempt < claimed.policy.max_attempts:
                    return self._decider.later(claimed, error)
                return TimedOut(error)
            case "cancel":
                return Cancelled(f"{running.reason}; {what}")
            case "shutdown" if claimed.policy.on_shutdown == "fail":
                grace = rate_in_words(self._runtime.settings.shutdown_grace)
                error = f"{running.reason} and the run did not finish within the shutdown grace of {grace}; {what}"
                return Failed("PROCESS_TERMINATED", error)
            case "shutdown" | "blocked":
                return Release(running.reason)
            case _:
                return None
