"""The world: one seed, one history.

Processes (workers with their orchestrators, and clients) run the engine's own code on one real database. They move
one at a time, in an order that the seed decides, and stop before and after each transaction and wherever they wait.
There a process may crash, be paused past its leases, find the database locked or unavailable, or lose the reply to a
commit; the clock may jump; workers may live for less than a lease; and the database may be locked for longer than a
lease, for all processes or for one. After every commit the oracle checks the database. At the end the faults stop, and
every run must end.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import greenlet  # type: ignore[import-untyped]
from tests.simulation.database import Database
from tests.simulation.oracle import Commit, Oracle, Violation
from tests.simulation.processes import Client, Process, WorkerProcess
from tests.simulation.threads import Threading

from holdfast.support.clock import SystemClock
from holdfast.support.ids import Ids
from holdfast.testing import Fault

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Odds:
    """How much happens in a history, and the probability of each fault at a transaction."""

    clients: int = 2
    operations: int = 8
    features: int = 3
    """The weight of builds, children, pipelines and limits among a client's operations; all others together have 5."""
    workers: int = 3
    concurrency: int = 3
    busy: float = 0.01
    unavailable: float = 0.005
    reply_lost: float = 0.02
    notification_lost: float = 0.1
    crash: float = 0.004
    pause: float = 0.004
    stall: float = 0.015
    clock_step: float = 0.004
    shutdown: float = 0.002
    short_life: float = 0.1
    """The probability that a worker lives for less than a lease."""
    block: float = 0.0005
    """The probability that no process can write for a while."""
    block_one: float = 0.0005
    """The probability that one process can't write for a while, but the others can."""
    all_live: bool = False
    """True if no fault ends a worker; then no lease may be removed."""
    takeover_within: float | None = None
    """The maximum number of seconds between the expiry of a lease and its removal, if no other fault delays it."""
    chaos_for: float = 45.0
    settle_for: float = 900.0


SMALLER = Odds(workers=2, operations=6)
"""For a database server, which is slower than a file."""
QUIET = Odds(
    features=0,
    busy=0,
    unavailable=0,
    reply_lost=0,
    crash=0,
    pause=0,
    stall=0,
    clock_step=0,
    shutdown=0,
    short_life=0,
    block=0,
    block_one=0,
    chaos_for=120,
)
CHURNING = replace(QUIET, short_life=1, takeover_within=25)
"""Every worker lives for less than a lease, and nothing else goes wrong."""
BLOCKED = replace(QUIET, block=0.004, all_live=True)
"""The database is locked for longer than a lease, and nothing else goes wrong."""


@dataclass(eq=False)
class Actor:
    """A thread of a simulated process."""

    name: str
    process: Process
    number: int
    runner: greenlet.greenlet
    wake_at: float | None = 0.0
    condition: Callable[[], bool] | None = None
    at_boundary: bool = False
    tx_now: datetime = START
    """The time (`tx.now`) of its last transaction."""

    @property
    def role(self) -> str:
        return self.name.removeprefix("holdfast-")


class HostClock(SystemClock):
    """The engine's own clock on a simulated host: only its two readings come from the world."""

    def __init__(self, world: World) -> None:
        self._world = world
        super().__init__()

    def elapsed(self) -> float:
        return self._world.elapsed

    def wall(self) -> datetime:
        return self._world.time()


@dataclass
class Failure:
    seed: int
    problem: str
    moves: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(
            [
                f"seed {self.seed}: {self.problem}",
                "the last moves were:",
                *(f"    {move}" for move in self.moves),
                f"replay it with: make sim SEED={self.seed}",
            ]
        )


class World:
    def __init__(self, seed: int, database: Database, *, odds: Odds | None = None, verbose: bool = False) -> None:
        self.seed, self.database, self.odds, self.verbose = seed, database, odds or Odds(), verbose
        self.random = random.Random(seed)
        self.elapsed = 1000.0
        self.offset = timedelta(0)
        self.jumped = False
        self.jumped_at = 0.0
        self.chaos = True
        self.moves: deque[str] = deque(maxlen=40)
        self.count = 0
        self.commits = 0
        self.processes: list[Process] = []
        self.actors: list[Actor] = []
        self.current: Actor | None = None
        self.main = greenlet.getcurrent()
        self.oracle = Oracle(self)
        self._numbers = itertools.count(1)
        self._process_numbers = itertools.count(1)
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._lifetimes = random.Random(f"lives of {seed}")
        self.blocked_until = 0.0
        self._commit: Commit | None = None

    # The course of a history

    def run(self) -> Failure | None:
        """Run one history; return what went wrong, or None."""
        with Threading(self).installed(), _alarm(self.oracle), _quiet_logs():
            try:
                self._run_history()
                return None
            except Violation as violation:
                return Failure(self.seed, str(violation), list(self.moves))
            finally:
                for process in self.processes:
                    process.die()

    def _run_history(self) -> None:
        for _ in range(self.odds.workers):
            self.start_worker()
        for _ in range(self.odds.clients):
            self._start(Client(self, f"client-{next(self._process_numbers)}"))
        self._run_until(until=self.elapsed + self.odds.chaos_for, done=lambda: False)
        self.note("the faults stop")
        self.chaos = False
        self.blocked_until = 0.0
        for process in self.processes:
            process.blocked_until = 0.0
            if process.paused_until is not None:
                self._resume(process)
        for _ in range(2 - len(self._working())):
            self.start_worker()
        self._run_until(until=self.elapsed + self.odds.settle_for, done=self._all_ended)
        with self.database.engine(HostClock(self), Ids(seed=0)) as observer:
            self.oracle.final(observer)

    def _run_until(self, *, until: float, done: Callable[[], bool]) -> None:
        while self.elapsed < until and not done():
            self._step()

    def _all_ended(self) -> bool:
        clients = [process for process in self.processes if isinstance(process, Client) and not process.dead]
        return not clients and self.oracle.idle()

    def _working(self) -> list[WorkerProcess]:
        return [p for p in self.processes if isinstance(p, WorkerProcess) and not p.dead and not p.leaving]

    # Called by processes and their threads

    def time(self) -> datetime:
        """The time of the database, which the clocks of the hosts follow."""
        return START + self.offset + timedelta(seconds=self.elapsed)

    def spawn(self, work: Callable[[], object], *, name: str, process: Process | None = None) -> None:
        """Create a thread of the given process, or of the current one."""
        if process is None:
            assert self.current is not None, "no process is running"
            process = self.current.process
        if process.dead:
            raise greenlet.GreenletExit
        number = next(self._numbers)

        def body() -> None:
            with contextlib.suppress(greenlet.GreenletExit):
                work()

        self.actors.append(Actor(name, process, number, greenlet.greenlet(body, parent=self.main)))

    def wait(self, seconds: float | None, condition: Callable[[], bool]) -> None:
        """Let other threads run until the condition is true or the time has passed."""
        actor = self._current_actor()
        actor.wake_at = None if seconds is None else self.elapsed + max(0.0, seconds)
        actor.condition = condition
        self._switch(actor)

    def sleep(self, seconds: float) -> None:
        self.wait(seconds, lambda: False)

    def before_transaction(self, *, write: bool) -> Fault | None:
        """Called before a transaction begins; return the fault that it meets, or None."""
        actor = self._current_actor()
        actor.wake_at, actor.condition, actor.at_boundary = self.elapsed, None, True
        if self._happens(self.odds.stall):
            actor.wake_at += self.random.choice([0.5, 3.0, 12.0, 25.0])
            self.note(f"is stalled before a transaction until {actor.wake_at - 1000:.1f}")
        self._switch(actor)
        actor.at_boundary, actor.tx_now = False, actor.process.now
        if not write:
            return None
        if self.blocked(actor.process):
            return Fault.BUSY
        odds = self.odds
        for fault, chance in (
            (Fault.BUSY, odds.busy),
            (Fault.UNAVAILABLE, odds.unavailable),
            (Fault.REPLY_LOST, odds.reply_lost),
        ):
            if self._happens(chance):
                self.note(f"meets a fault: {fault.name}")
                return fault
        return None

    def committed(self) -> None:
        """Called after a commit, before the thread that committed knows of it."""
        actor = self._current_actor()
        self.commits += 1
        self._commit = Commit(actor.process, actor.role, actor.tx_now)
        actor.wake_at, actor.condition = self.elapsed, None
        if self._happens(self.odds.stall):
            actor.wake_at += self.random.choice([0.5, 3.0, 12.0, 25.0])
            self.note(f"is stalled after a commit until {actor.wake_at - 1000:.1f}")
        self._switch(actor)

    def blocked(self, process: Process) -> bool:
        """Whether the database is locked, for all processes or for this one."""
        return self.elapsed < max(self.blocked_until, process.blocked_until)

    def notification_is_lost(self) -> bool:
        return self._happens(self.odds.notification_lost)

    def note(self, what: str) -> None:
        source = f"{self.current.process.name}/{self.current.role}" if self.current is not None else "world"
        line = f"{self.elapsed - 1000:9.3f}  {source:34} {what}"
        self.moves.append(line)
        if self.verbose:
            print(line)

    def plan(self, after: float, work: Callable[[], None]) -> None:
        heapq.heappush(self._planned, (self.elapsed + after, next(self._numbers), work))

    def start_worker(self) -> None:
        if self.elapsed < self.jumped_at + 5:
            # A process that starts right after a jump can't know of it and may take over too early: decision 0016.
            self.plan(5, self.start_worker)
            return
        process = WorkerProcess(self, f"worker-{next(self._process_numbers)}")
        self._start(process)
        if self.chaos and self._lifetimes.random() < self.odds.short_life:
            self.plan(self._lifetimes.uniform(1, 14), lambda: self._crash_early(process))

    def _crash_early(self, process: WorkerProcess) -> None:
        if self.chaos and not process.dead:
            self.note(f"{process.name} crashes after less than a lease")
            process.die()
            self.plan(self._lifetimes.uniform(0, 2), self.start_worker)

    # The scheduler

    def _start(self, process: Process) -> None:
        self.processes.append(process)
        self.spawn(process.main, name="main", process=process)

    def _step(self) -> None:
        self.count += 1
        while self._planned and self._planned[0][0] <= self.elapsed:
            heapq.heappop(self._planned)[2]()
        for process in self.processes:
            if process.paused_until is not None and process.paused_until <= self.elapsed:
                self._resume(process)
        actor = self._pick()
        if actor is None:
            self._let_time_pass()
            return
        if actor.at_boundary and self.chaos and self._cause_faults(actor):
            return
        self._switch_to(actor)
        self.elapsed += self.random.random() * 0.01

    def _pick(self) -> Actor | None:
        runnable = [actor for actor in self.actors if self._can_run(actor)]
        # The watch thread goes first: it needs no database, so a live process always stops its work in time.
        watches = [actor for actor in runnable if actor.role == "watch" and not actor.process.watch_delay]
        if watches:
            return watches[0]
        return self.random.choice(runnable) if runnable else None

    def _can_run(self, actor: Actor) -> bool:
        if actor.process.paused_until is not None:
            return False
        if actor.wake_at is not None and actor.wake_at <= self.elapsed:
            return True
        return actor.condition is not None and actor.condition()

    def _switch_to(self, actor: Actor) -> None:
        self.current = actor
        process = actor.process
        process.watch_delay = max(0, process.watch_delay - 1)
        try:
            actor.runner.switch()
        finally:
            self.current = None
        if process.just_resumed and actor.role == "watch" and process.checks_leases():
            process.just_resumed = False
            self.oracle.overlap_possible = True
        if actor.runner.dead:
            with contextlib.suppress(ValueError):
                self.actors.remove(actor)
        self.oracle.check(self._commit)
        self._commit = None

    def _let_time_pass(self) -> None:
        """Advance the time in small steps towards the next moment at which a thread wakes."""
        moments = [a.wake_at for a in self.actors if a.wake_at is not None and a.process.paused_until is None]
        moments += [p.paused_until for p in self.processes if p.paused_until is not None]
        moments += [at for at, _, _ in self._planned]
        next_at = min(moments, default=self.elapsed + 1)
        self.elapsed = max(self.elapsed, min(next_at, self.elapsed + 0.25))

    def _cause_faults(self, actor: Actor) -> bool:
        """Perhaps cause a fault at a transaction; True if the process can't continue."""
        odds, process = self.odds, actor.process
        if self._happens(odds.clock_step):
            step = self.random.choice([-120, -20, -2, 2, 20, 120, 1000])
            self.offset += timedelta(seconds=step)
            self.jumped, self.jumped_at = True, self.elapsed
            self.note(f"the database's clock jumps by {step} s")
        if self._happens(odds.block):
            self.blocked_until = self.elapsed + self.random.choice([5.0, 20.0, 45.0])
            self.note(f"the database is locked until {self.blocked_until - 1000:.1f}")
        if self._happens(odds.block_one):
            process.blocked_until = self.elapsed + self.random.choice([5.0, 20.0, 45.0])
            self.note(f"{process.name} can't write until {process.blocked_until - 1000:.1f}")
        if self._happens(odds.crash):
            self.kill(process)
            return True
        if isinstance(process, WorkerProcess):
            if self._happens(odds.pause):
                process.paused_until = self.elapsed + self.random.choice([2.0, 10.0, 20.0, 60.0])
                self.note(f"{process.name} is paused until {process.paused_until - 1000:.1f}")
                return True
            if not process.leaving and process.worker is not None and self._happens(odds.shutdown):
                self.note(f"{process.name} is asked to stop")
                process.leave()
                self.plan(self.random.uniform(0, 10), self.start_worker)
        return False

    def kill(self, process: Process) -> None:
        self.note(f"{process.name} crashes")
        process.die()
        if isinstance(process, WorkerProcess):
            self.plan(self.random.uniform(0, 20), self.start_worker)

    def remove_threads(self, process: Process) -> None:
        """Remove the threads of a process, wherever they are."""
        mine = [actor for actor in self.actors if actor.process is process]
        self.actors = [actor for actor in self.actors if actor.process is not process]
        for actor in mine:
            if actor.runner is not greenlet.getcurrent() and actor.runner:
                actor.runner.throw(greenlet.GreenletExit)

    def _resume(self, process: Process) -> None:
        process.paused_until = None
        process.just_resumed, process.watch_delay = True, self.random.choice([0, 0, 1, 3, 6])
        self.note(f"{process.name} is resumed")

    def _switch(self, actor: Actor) -> None:
        self.main.switch()
        if actor.process.dead:
            raise greenlet.GreenletExit

    def _current_actor(self) -> Actor:
        if self.current is None or self.current.process.dead:
            raise greenlet.GreenletExit
        return self.current

    def _happens(self, chance: float) -> bool:
        return self.chaos and self.random.random() < chance


@contextlib.contextmanager
def _alarm(oracle: Oracle) -> Iterator[None]:
    """Treat every error that the engine logs as a violation: its loops continue after unexpected errors."""

    class Alarm(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            died = record.exc_info is not None and record.exc_info[0] is greenlet.GreenletExit
            if record.levelno >= logging.ERROR and not died:
                oracle.alarm(self.format(record))

    handler, logger = Alarm(), logging.getLogger("holdfast")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def _quiet_logs() -> Iterator[None]:
    logger = logging.getLogger("holdfast")
    before, propagate = logger.level, logger.propagate
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.propagate = propagate
