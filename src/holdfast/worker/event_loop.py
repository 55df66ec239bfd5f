"""Event loop: shared by a worker's async runs, and replaced when one of them blocks it for too long.

    answering ──no answer for a second──▶ blocked ──the blocking call returns──▶ answering
                                             │
                                             └──after one lease, or when the blocking run has ended──▶ replaced

`Deadlines` pings the loop twice a second while it has runs. Time in which `Deadlines` itself was late does not count,
because then the whole process was stalled and no run is to blame. A loop counts as blocked only if two checks find it
in the same step: a loop with very many short steps is slow, but not blocked.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import math
import sys
import threading
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from holdfast.jobs.job import Job
from holdfast.support.clock import Clock
from holdfast.worker.in_flight import RunInFlight

log = logging.getLogger("holdfast.worker")

T = TypeVar("T")
Work: TypeAlias = Callable[["Loop"], Coroutine[Any, Any, None]]

PING_INTERVAL = 0.5
BLOCKED_AFTER = 1.0
SAME_STEP = 0.4  # seconds for which the loop must have been in the same step
SHARE = 0.1  # if others blocked a run for this share of its timeout, it is released instead of timed out
RECHECK_AFTER = 0.05
MAX_BLOCKAGES = 1000  # blockages of one loop that are remembered
MAX_FRAMES = 20  # stack frames that an event keeps
OURS = str(Path(__file__).parent)

_owner: contextvars.ContextVar[RunInFlight] = contextvars.ContextVar("holdfast_owner")


@dataclass(eq=False)
class Blockage:
    """A period in which the loop did not answer, and the run whose code it was executing."""

    step: object
    """The task step or callback that does not return."""
    blocker: RunInFlight | None
    stack: list[str]
    where: str
    began: float
    ended: float = math.inf

    def __str__(self) -> str:
        if self.blocker is None:
            return f"code outside of any run blocks the event loop at {self.where}"
        entry = self.blocker.lease.entry
        return f"run {entry.run_id} ({entry.job}) blocks the event loop at {self.where}"


class Gate:
    """Cancels a run's coroutine at its next step, even if that step comes before the loop cancels the task."""

    def __init__(self) -> None:
        self.closed = False
        """Whether the run is being stopped and its coroutine has not been cancelled yet."""

    @types.coroutine
    def through(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Await `work`."""
        step: Callable[[Any], Any] = work.send
        argument: Any = None
        try:
            while True:
                awaited = step(argument)
                try:
                    step, argument = work.send, (yield awaited)
                except GeneratorExit:
                    work.close()
                    raise
                except BaseException as error:
                    step, argument = work.throw, error
                if self.closed:
                    self.closed = False
                    step, argument = work.throw, asyncio.CancelledError()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class Loops:
    """The current loop of a worker, replaced when it stays blocked. Only `Deadlines` calls `check`."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        give_up_after: timedelta,
        on_block: Callable[[Blockage], None],
        on_change: Callable[[], None],
    ) -> None:
        self._name, self._clock, self._give_up_after = name, clock, give_up_after.total_seconds()
        self._on_block, self._on_change = on_block, on_change
        self._lock = threading.Lock()
        self._loop: Loop | None = None
        self._moment = threading.Event()

    @property
    def blocked(self) -> bool:
        """Whether a new run would not start soon."""
        return self._loop is not None and self._loop.blockage is not None

    def run(self, running: RunInFlight, work: Work) -> Loop:
        """Start `work` on the loop."""
        with self._lock:
            if self._loop is None:
                self._loop = Loop(self._name, self._clock)
            self._loop.run(running, work)
            return self._loop

    def check(self, now: float, *, late: float) -> float:
        """Check whether the loop answers. Return when to check again. `late` is how late this check itself is."""
        with self._lock:
            loop = self._loop
            if loop is None:
                return math.inf
            if not loop.answered:
                loop.delay(late)
                blockage = loop.current_blockage(now)
                if (
                    blockage is not None
                    and now - loop.pinged_at >= BLOCKED_AFTER
                    and now - loop.step_since >= SAME_STEP
                ):
                    self._mark_blocked(loop, blockage, now)
                return now + PING_INTERVAL
            if loop.blockage is not None:
                log.info("the event loop answers again after %.1f s", now - loop.blockage.began)
                loop.mark_unblocked(now)
                self._on_change()
            if not loop.busy:
                return math.inf
            loop.ping(now)
            return now + PING_INTERVAL

    def check_blocked(self, loop: Loop) -> None:
        """Check now what blocks this loop, because it did not cancel a run within the grace period."""
        now = self._clock.elapsed()
        with self._lock:
            if loop.answered:
                loop.ping(now)
            first = loop.current_blockage(now)
        self._moment.wait(RECHECK_AFTER)
        with self._lock:
            blockage = loop.current_blockage(now)
            if loop is self._loop and first is not None and blockage is not None and first.step is blockage.step:
                self._mark_blocked(loop, blockage, now)

    def close(self, *, wait: float) -> None:
        """End the loop. A blocked loop ends later, once the blocking call has returned and its runs have ended."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and loop.blockage is not None:
            loop.give_up()
        elif loop is not None:
            loop.close(wait=wait)

    def _mark_blocked(self, loop: Loop, blockage: Blockage, now: float) -> None:
        if loop.blockage is None or loop.blockage.blocker is not blockage.blocker:
            loop.mark_blocked(blockage)
            self._on_block(blockage)
        blocker = blockage.blocker
        if blocker is not None and (blocker.ended or now - loop.pinged_at >= self._give_up_after):
            self._give_up(loop, str(blockage), but=blocker)

    def _give_up(self, loop: Loop, reason: str, *, but: RunInFlight) -> None:
        """Release the other runs of this loop, and start new runs on another loop.

        A released run does not use up an attempt. Runs that must not start twice (`on_shutdown='fail'`) are kept.
        """
        log.warning("%s; releasing its other runs and starting a new event loop", reason)
        self._loop = None
        for running in loop.runs():
            if running is not but and running.claimed.policy.on_shutdown != "fail":
                running.stop("blocked", reason)
        loop.give_up()
        self._on_change()


class Loop:
    """One event loop in its own thread."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._clock = clock
        self._queue: deque[tuple[RunInFlight, Work]] = deque()
        self._tasks: dict[asyncio.Task[None], RunInFlight] = {}
        self._woken = False
        self._given_up = self._closing = False
        self.pinged_at = self._alive_at = clock.elapsed()
        self.answered = True
        self.step_since = 0.0
        self._step: object = None
        self.blockage: Blockage | None = None
        self._blockages: deque[Blockage] = deque(maxlen=MAX_BLOCKAGES)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        return bool(self._tasks or self._queue)

    def runs(self) -> list[RunInFlight]:
        return [*self._tasks.values(), *(running for running, _ in list(self._queue))]

    def run(self, running: RunInFlight, work: Work) -> None:
        """Start `work` on the loop. Several calls in a row wake the loop only once."""
        self._queue.append((running, work))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._begin_all)

    def call(self, fn: Callable[[], object]) -> None:
        """Call `fn` on the loop, unless the loop is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(fn)

    def ping(self, now: float) -> None:
        """Ask the loop to answer."""
        self.answered, self.pinged_at = False, now
        self.call(self._answer)

    def delay(self, late: float) -> None:
        """Don't count this much of the time since the last ping."""
        self.pinged_at += late
        self.step_since += late

    def mark_blocked(self, blockage: Blockage) -> None:
        self.mark_unblocked(blockage.began)
        self._blockages.append(blockage)
        self.blockage = blockage

    def mark_unblocked(self, now: float) -> None:
        if self.blockage is not None:
            self.blockage.ended = now
            self.blockage = None

    def current_blockage(self, now: float) -> Blockage | None:
        """Return the step that the loop is executing now; None if it is idle or has just answered."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        task = asyncio.current_task(self._loop)
        stack: list[tuple[str, str]] = []
        context: contextvars.Context | None = None
        step: Any = task
        while frame is not None and context is None:
            if frame.f_code is asyncio.Handle._run.__code__:
                # A task step or a callback; its context shows which run created it.
                step = frame.f_locals["self"]
                context = step._context
            else:
                name = f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
                stack.insert(0, (frame.f_code.co_filename, name))
            frame = frame.f_back
        if self.answered or (context is None and task is None):
            self._step = None
            return None
        if step is not self._step:
            self._step, self.step_since = step, now
        # Other loop implementations have no such handles. For them, find the run by the current task.
        blocker = context.get(_owner) if context is not None else self._tasks.get(task) if task is not None else None
        while len(stack) > 1 and stack[0][0].startswith(OURS):
            del stack[0]
        where = _where(stack, blocker.job if blocker is not None else None)
        began = self._alive_at if self.blockage is None else now
        return Blockage(step, blocker, [name for _, name in stack[-MAX_FRAMES:]], where, began)

    def release_if_starved(self, running: RunInFlight) -> None:
        """Release a timed-out run instead of ending it, if other runs blocked the loop for much of its timeout."""
        deadline, timeout = running.deadline, running.claimed.policy.timeout
        if running.stopped != "timeout" or not self._blockages or deadline is None or timeout is None:
            return
        others = [one for one in tuple(self._blockages) if one.blocker is not None and one.blocker is not running]
        if not others or running.claimed.policy.on_shutdown == "fail" or self.blocked_at(running):
            return
        began, seconds = deadline - timeout.total_seconds(), timeout.total_seconds()
        lost = sum(max(0.0, min(one.ended, deadline) - max(one.began, began)) for one in others)
        if lost >= SHARE * seconds or any(one.began <= deadline <= one.ended for one in others):
            running.release_instead(str(others[-1]))

    def blocked_at(self, running: RunInFlight) -> str | None:
        """Return the line at which this run blocks the loop, or None."""
        blockage = self.blockage
        return blockage.where if blockage is not None and blockage.blocker is running else None

    def give_up(self) -> None:
        """End the thread once the last run on it has ended."""
        self._given_up = True
        self.call(self._end_if_idle)

    def close(self, *, wait: float) -> None:
        self._closing = True
        self.call(self._loop.stop)
        self._thread.join(wait)

    def _begin_all(self) -> None:
        self._woken = False  # reset first, so that work added from now on wakes the loop again
        self._alive_at = self._clock.elapsed()
        while self._queue:
            running, work = self._queue.popleft()
            context = contextvars.copy_context()
            context.run(_owner.set, running)
            task = self._loop.create_task(work(self), context=context)
            self._tasks[task] = running  # asyncio itself keeps only a weak reference
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._given_up and not self.busy:
            self._closing = True
            self._loop.stop()

    def _answer(self) -> None:
        self._alive_at = self._clock.elapsed()
        self._step = None
        self.answered = True

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._closing:
            try:
                self._loop.run_forever()
            except BaseException:
                # asyncio passes on a task's SystemExit; it must end that task but not the shared loop.
                log.exception("an async job raised an error that would end the process")
        self._loop.close()


def _where(stack: list[tuple[str, str]], job: Job[..., Any] | None) -> str:
    """Return the innermost line in the job's own file, or the innermost line if there is none."""
    code = getattr(inspect.unwrap(job.fn), "__code__", None) if job is not None else None
    own = [name for file, name in stack if code is not None and file == code.co_filename]
    return (own or [name for _, name in stack])[-1].rpartition(" in ")[0]
