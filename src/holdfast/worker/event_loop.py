"""Event loop: the one that a worker's async runs share, and what happens when one of them blocks it.

    answers ──no answer for a second──▶ stands still ──the call returns──▶ answers
                                             │
                                             └──a lease, or the blocking run has ended──▶ given up: a new loop

`Deadlines` asks the loop for an answer twice a second while it has runs. Only time in which `Deadlines` itself ran on
time counts: when the whole process stands still, no run is to blame. Two looks must find the loop in the same step: a
loop that has very many short steps to do is late, but not blocked.
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

ASK_EVERY = 0.5
NO_ANSWER = 1.0
SAME_STEP = 0.4  # so far apart, two looks find the loop in the same step
SHARE = 0.1  # of a run's window: a run that lost less to standstills would hardly have made it without them
A_MOMENT = 0.05
MOST = 1000  # standstills of one loop that are remembered
DEEPEST = 20  # frames of a stack that an event keeps
OURS = str(Path(__file__).parent)

_owner: contextvars.ContextVar[RunInFlight] = contextvars.ContextVar("holdfast_owner")


@dataclass(eq=False)
class Standstill:
    """A time in which the loop did not answer, and whose code it was executing."""

    step: object
    """The step of a task, or the callback, that does not end."""
    blocker: RunInFlight | None
    stack: list[str]
    where: str
    began: float
    ended: float = math.inf

    def __str__(self) -> str:
        if self.blocker is None:
            return f"code of no run blocks the event loop at {self.where}"
        ticket = self.blocker.lease.ticket
        return f"run {ticket.run_id} ({ticket.job}) blocks the event loop at {self.where}"


class Gate:
    """Cancels a run's coroutine at its next step, even if that step comes before the loop cancels the task."""

    def __init__(self) -> None:
        self.shut = False
        """Whether the run was told to stop and its coroutine does not know it yet."""

    @types.coroutine
    def through(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """Await `work`."""
        step: Callable[[Any], Any] = work.send
        given: Any = None
        try:
            while True:
                awaited = step(given)
                try:
                    step, given = work.send, (yield awaited)
                except GeneratorExit:
                    work.close()
                    raise
                except BaseException as error:
                    step, given = work.throw, error
                if self.shut:
                    self.shut = False
                    step, given = work.throw, asyncio.CancelledError()
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class Loops:
    """One loop for all, until it has to be replaced. `check` is called by `Deadlines` alone."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        give_up_after: timedelta,
        on_block: Callable[[Standstill], None],
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
        return self._loop is not None and self._loop.standstill is not None

    def run(self, running: RunInFlight, work: Work) -> Loop:
        """Begin `work` on the loop, soon."""
        with self._lock:
            if self._loop is None:
                self._loop = Loop(self._name, self._clock)
            self._loop.run(running, work)
            return self._loop

    def check(self, now: float, *, late: float) -> float:
        """See whether the loop answers; when to look again. `late` is by how much this look itself came too late."""
        with self._lock:
            loop = self._loop
            if loop is None:
                return math.inf
            if not loop.answered:
                loop.delay(late)
                found = loop.look_inside(now)
                if found is not None and now - loop.asked_at >= NO_ANSWER and now - loop.step_since >= SAME_STEP:
                    self._stands_still(loop, found, now)
                return now + ASK_EVERY
            if loop.standstill is not None:
                log.info("the event loop answers again after %.1f s", now - loop.standstill.began)
                loop.answers_again(now)
                self._on_change()
            if not loop.busy:
                return math.inf
            loop.ask(now)
            return now + ASK_EVERY

    def suspect(self, loop: Loop) -> None:
        """This loop has not even begun to cancel a run within its grace: see now who blocks it."""
        now = self._clock.elapsed()
        with self._lock:
            if loop.answered:
                loop.ask(now)
            first = loop.look_inside(now)
        self._moment.wait(A_MOMENT)
        with self._lock:
            found = loop.look_inside(now)
            if loop is self._loop and first is not None and found is not None and first.step is found.step:
                self._stands_still(loop, found, now)

    def close(self, *, wait: float) -> None:
        """Let the loop end. A blocked one ends by itself, after the call that blocks it and its cancelled runs."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and loop.standstill is not None:
            loop.give_up()
        elif loop is not None:
            loop.close(wait=wait)

    def _stands_still(self, loop: Loop, found: Standstill, now: float) -> None:
        if loop.standstill is None or loop.standstill.blocker is not found.blocker:
            loop.stands_still(found)
            self._on_block(found)
        blocker = found.blocker
        if blocker is not None and (blocker.ended or now - loop.asked_at >= self._give_up_after):
            self._give_up(loop, str(found), but=blocker)

    def _give_up(self, loop: Loop, because: str, *, but: RunInFlight) -> None:
        """Release its other runs, which use up no attempt, and let new ones begin on another loop."""
        log.warning("%s; its other runs are released, new ones begin on another loop", because)
        self._loop = None
        for running in loop.runs():
            if running is not but and running.claim.policy.on_shutdown != "fail":
                running.stop("blocked", because)
        loop.give_up()
        self._on_change()


class Loop:
    """One event loop in a thread of its own."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._clock = clock
        self._line: deque[tuple[RunInFlight, Work]] = deque()
        self._tasks: dict[asyncio.Task[None], RunInFlight] = {}
        self._woken = False
        self._given_up = self._closing = False
        self.asked_at = self._alive_at = clock.elapsed()
        self.answered = True
        self.step_since = 0.0
        self._step: object = None
        self.standstill: Standstill | None = None
        self._standstills: deque[Standstill] = deque(maxlen=MOST)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        return bool(self._tasks or self._line)

    def runs(self) -> list[RunInFlight]:
        return [*self._tasks.values(), *(running for running, _ in list(self._line))]

    def run(self, running: RunInFlight, work: Work) -> None:
        """Begin `work` on the loop, soon. A batch wakes the loop once."""
        self._line.append((running, work))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._begin_all)

    def call(self, fn: Callable[[], object]) -> None:
        """Do `fn` on the loop, soon; nothing if there is no loop any more."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(fn)

    def ask(self, now: float) -> None:
        """Ask for a sign of life."""
        self.answered, self.asked_at = False, now
        self.call(self._answer)

    def delay(self, late: float) -> None:
        """So much of the time since it was asked does not count."""
        self.asked_at += late
        self.step_since += late

    def stands_still(self, found: Standstill) -> None:
        self.answers_again(found.began)
        self._standstills.append(found)
        self.standstill = found

    def answers_again(self, now: float) -> None:
        if self.standstill is not None:
            self.standstill.ended = now
            self.standstill = None

    def look_inside(self, now: float) -> Standstill | None:
        """What the loop executes at this moment; None if it waits for something to do, or has answered meanwhile."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        task = asyncio.current_task(self._loop)
        stack: list[tuple[str, str]] = []
        context: contextvars.Context | None = None
        step: Any = task
        while frame is not None and context is None:
            if frame.f_code is asyncio.Handle._run.__code__:
                # A step of a task or a callback: either has the context of the run that made it.
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
        # Loops of other makes have no such handles.
        blocker = context.get(_owner) if context is not None else self._tasks.get(task) if task is not None else None
        while len(stack) > 1 and stack[0][0].startswith(OURS):
            del stack[0]
        where = _where(stack, blocker.job if blocker is not None else None)
        began = self._alive_at if self.standstill is None else now
        return Standstill(step, blocker, [name for _, name in stack[-DEEPEST:]], where, began)

    def excuse(self, running: RunInFlight) -> None:
        """A run is not timed out for time that others took from it: it is released."""
        deadline, window = running.deadline, running.claim.policy.timeout
        if running.stopped != "timeout" or not self._standstills or deadline is None or window is None:
            return
        others = [one for one in tuple(self._standstills) if one.blocker is not None and one.blocker is not running]
        if not others or running.claim.policy.on_shutdown == "fail" or self.blocked_at(running):
            return
        began, seconds = deadline - window.total_seconds(), window.total_seconds()
        lost = sum(max(0.0, min(one.ended, deadline) - max(one.began, began)) for one in others)
        if lost >= SHARE * seconds or any(one.began <= deadline <= one.ended for one in others):
            running.excuse(str(others[-1]))

    def blocked_at(self, running: RunInFlight) -> str | None:
        """Where this run blocks the loop, if it does."""
        standstill = self.standstill
        return standstill.where if standstill is not None and standstill.blocker is running else None

    def give_up(self) -> None:
        """End the thread when the last run that is on it has ended."""
        self._given_up = True
        self.call(self._end_if_idle)

    def close(self, *, wait: float) -> None:
        self._closing = True
        self.call(self._loop.stop)
        self._thread.join(wait)

    def _begin_all(self) -> None:
        self._woken = False  # before looking: what comes from now on wakes again
        self._alive_at = self._clock.elapsed()
        while self._line:
            running, work = self._line.popleft()
            context = contextvars.copy_context()
            context.run(_owner.set, running)
            task = self._loop.create_task(work(self), context=context)
            self._tasks[task] = running  # the loop itself keeps only a weak hold of it
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
                # asyncio lets a task's SystemExit through; it ends that task, not everyone's loop.
                log.exception("a task of an async job tried to end the process")
        self._loop.close()


def _where(stack: list[tuple[str, str]], job: Job[..., Any] | None) -> str:
    """The deepest line in the file of the job; of a stack that has none, its deepest line."""
    code = getattr(inspect.unwrap(job.fn), "__code__", None) if job is not None else None
    own = [name for file, name in stack if code is not None and file == code.co_filename]
    return (own or [name for _, name in stack])[-1].rpartition(" in ")[0]
