"""Worker: claims and executes runs until it is stopped.

worker ── loop           finishes and claims runs, a commit at a time
       ── heartbeat      renews the leases of the runs in flight
       ── deadlines      stops runs that reach their deadline or lose their lease
       ── orchestrator   promotes waiting runs and recovers lost ones
       ── listener       receives notifications from other processes
       ── guardian       a process that renews the leases while this process is stalled
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Literal, get_args

from holdfast.builds.decorator import BuildJob
from holdfast.jobs.importing import refuse_import
from holdfast.jobs.registry import OPERATIONS
from holdfast.orchestrator.loop import Orchestrator, Pulse
from holdfast.orchestrator.prune import Pruner
from holdfast.orchestrator.schedule import Scheduler
from holdfast.orchestrator.statistics import Rollup, gauge_task
from holdfast.runs import workers
from holdfast.runtime import Runtime
from holdfast.store import outages
from holdfast.store.notifier import Listener
from holdfast.store.transaction import Transaction
from holdfast.support.errors import HoldfastError, InvalidPolicy, StoreBusy, StoreUnavailable
from holdfast.support.validation import as_duration, check_name, is_number
from holdfast.worker import attempt_log, registration
from holdfast.worker.context import RunContext
from holdfast.worker.deadlines import Deadlines
from holdfast.worker.declarations import Declarations
from holdfast.worker.event_buffer import EventBuffer
from holdfast.worker.guardian import Guardian
from holdfast.worker.heartbeat import Heartbeat
from holdfast.worker.in_flight import InFlight, RunInFlight
from holdfast.worker.loop import WorkerLoop
from holdfast.worker.poll import Poll
from holdfast.worker.run_log import RunLog, current

log = logging.getLogger("holdfast.worker")

Ended = Literal["drained", "released"]
Role = Literal["both", "worker", "orchestrator"]
ROLES: tuple[Role, ...] = get_args(Role)


class Worker:
    """Executes runs of one Holdfast application until it is stopped.

    queues       the queues to serve, most important first. Default: the queues of the settings and of the builds
    concurrency  how many runs to execute at once
    exclusive    a name that only one live worker may have. At start, the worker recovers the runs that an earlier
                 worker of this name left behind
    unknown      with `exclusive`: 'fail' also recovers, at start, the runs of workers that are no longer registered,
                 whatever their names; 'leave' leaves those runs to the orchestrator
    drain        stop when there is nothing left to do
    role         'worker' does not orchestrate; 'orchestrator' promotes and recovers runs but claims none; 'both' is
                 the default
    schedules    whether to claim due slots of the schedules in code. Default: the `schedules` setting
    """

    def __init__(
        self,
        runtime: Runtime,
        declarations: Declarations,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        exclusive: str | None = None,
        unknown: Literal["leave", "fail"] = "leave",
        drain: bool = False,
        role: Role = "both",
        schedules: bool | None = None,
    ) -> None:
        self.runtime, self.declarations = runtime, declarations
        self.exclusive, self.unknown, self.drain, self.role = exclusive, unknown, drain, role
        self.drained = False
        self.claims, self.orchestrates = role != "orchestrator", role != "worker"
        self.schedules = self.orchestrates and (runtime.settings.schedules if schedules is None else schedules)
        _check_role(self, queues, concurrency)
        self._follows_queues = self.claims and queues is None
        self.queues = [] if not self.claims else _queues(runtime) if queues is None else _named(queues)
        self.served = _served(self.queues) if self.claims else []
        """The queues, plus the queue of bulk operations, which every worker serves."""
        self.jobs = runtime.jobs.served()
        self._known = self._count_declared()
        if concurrency is not None and not is_number(concurrency, least=1):
            raise InvalidPolicy(f"concurrency must be a whole number of at least 1, not {concurrency!r}")
        self.concurrency = (concurrency or runtime.settings.concurrency) if self.claims else 0
        self.id = runtime.ids.holder(exclusive or ("worker" if self.claims else "orchestrator"))
        self.in_flight = InFlight()
        self.restart: Callable[[], None] | None = None
        """Ends this process at once and starts it again. Set only if the process runs nothing but this worker. The
        worker calls it if another worker has taken over, or may soon take over, a run that still executes here."""
        self._stopping = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def start(self, *, wait: timedelta | float = 0) -> None:
        """Register the worker, recover the runs that a predecessor left behind, and start the threads.

        `wait` is how long to wait for a database that is restarting or not up yet.
        """
        refuse_import("starts a worker")
        runtime, declarations = self.runtime, self.declarations
        outages.outlast(self._register, wait=as_duration(wait), clock=runtime.clock)
        store = runtime.store
        store.warn()
        event_buffer = EventBuffer(self.id)
        self._heartbeat = Heartbeat(
            store,
            self.in_flight,
            runtime.settings,
            runtime.clock,
            holder=self.id,
            on_busy=partial(_contended, runtime, event_buffer),
            on_taken_over=self._taken_over,
        )
        if self.claims:
            self.in_flight.guardian = Guardian.of(runtime, holder=self.id, may_kill=self.restart is not None)
        self._deadlines = Deadlines(
            self.in_flight,
            runtime.clock,
            lease=runtime.settings.lease,
            on_stall=self._heartbeat.renew_now,
            on_unsafe=self._unsafe,
        )
        self._loop = WorkerLoop(
            runtime,
            self.in_flight,
            self._heartbeat,
            self._deadlines,
            event_buffer,
            declarations,
            holder=self.id,
            queues=self.queues,
            jobs=self.jobs,
            concurrency=self.concurrency,
            named=self.exclusive is not None or runtime.settings.single_process,
        )
        self._scheduler = Scheduler(
            store, declarations.schedules if self.schedules else {}, holder=self.id, guard=self._guard
        )
        self._rollup = Rollup(store, runtime.clock)
        pruner = Pruner(
            store, runtime.settings, runtime.clock, artifact_store=declarations.artifact_store, seed=self.id
        )
        self._tasks = (pruner.task, self._rollup.task, gauge_task(store, runtime.clock))
        self._orchestrator = Orchestrator(
            store,
            runtime.settings,
            runtime.clock,
            poll=Poll(
                runtime,
                self.in_flight,
                self._heartbeat,
                queues=self.served,
                jobs=self.jobs,
                holder=self.id,
                register=lambda: registration.register(runtime, self),
                polls=declarations.polls,
            ),
            may_recover=self._heartbeat.fresh,
            on_pulse=self._on_pulse,
            on_busy=partial(_contended, runtime, event_buffer),
            chore=self._chore,
            scheduler=self._scheduler,
            moves=self.orchestrates,
        )
        self._listener = Listener(store, runtime.notifier, listen=runtime.settings.listen)
        self._run_log = RunLog(self._current, level=getattr(logging, runtime.settings.run_log_level.upper()))
        logging.getLogger().addHandler(self._run_log)
        # If logging is not set up, the root logger drops records below WARNING. Records of ctx.log are stored anyway.
        logging.getLogger("holdfast.run").setLevel(self._run_log.level)
        self._leave = runtime.notifier.listen(self._on_commit)
        declarations.polls[self.id] = runtime.clock.elapsed()
        self._orchestrating = threading.Thread(
            target=self._orchestrator.run, args=(self._stopped,), name="holdfast-orchestrator", daemon=True
        )
        self._thread = threading.Thread(target=self._run, name="holdfast-worker", daemon=True)
        self._heartbeat.start()
        self._deadlines.start()
        self._listener.start()
        self._orchestrating.start()
        self._thread.start()

    def _current(self) -> RunContext | None:
        """Return the context of the run that this thread or task executes, if the run belongs to this worker."""
        context = current.get()
        ours = context is not None and self.in_flight.get(context.run.id, context.run.claim) is not None
        return context if ours else None

    def _register(self) -> None:
        with registration.take(self.runtime, self) as lock:
            if self.claims:
                attempt_log.unserved(self.runtime, self.queues)
            self._lock = lock.pop_all()

    def stop(self, *, grace: timedelta | None = None) -> Ended:
        """Stop claiming, let runs finish within the grace period, release the others, and give up all locks."""
        self.request_stop()
        if not self._drained(grace if grace is not None else self.runtime.settings.shutdown_grace):
            self._loop.release()
        return self.join()

    def request_stop(self) -> None:
        """Stop claiming runs and slots, and stop the worker once its runs have finished."""
        self._stopping.set()
        self._heartbeat.stopping = True
        self.in_flight.guardian.stopping()
        self._scheduler.close()
        self._loop.stop_claiming()

    def join(self, timeout: float | None = None) -> Ended:
        """Wait until the worker has stopped. Raise the error that stopped it, if there was one."""
        assert self._thread is not None
        self._thread.join(timeout)
        if self._failure is not None:
            raise self._failure
        return "released" if self._loop.completer.released else "drained"

    @property
    def claimed(self) -> int:
        """How many runs the worker has claimed and started."""
        return self._loop.claimed

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        with self.runtime.store.reserved():
            try:
                while not self._finished():
                    self.runtime.store.require_safe()
                    self._loop.turn()
            except BaseException as error:
                # Errors of Holdfast explain themselves in a line; other errors need their traceback.
                log.error(
                    "the worker stops because of an error: %s", error, exc_info=not isinstance(error, HoldfastError)
                )
                self._failure = error
            finally:
                self._close()

    def _guard(self, tx: Transaction) -> None:
        """Raise if the worker has lost its exclusive name, because then it must not claim slots."""
        if self.exclusive is not None or self.runtime.settings.single_process:
            workers.require(tx, self.id)

    def _finished(self) -> bool:
        return self._loop.idle and (self._stopping.is_set() or (self.drain and self._nothing_left()))

    # Notifications

    def _on_commit(self, names: set[str], ended: list[str]) -> None:
        if "" in names or not names.isdisjoint(self.served):
            self._loop.want_claim(bulk_now=OPERATIONS in names)
        if not names.isdisjoint(("cancels", "drains", "")):
            self._orchestrator.signal.set()
        self._orchestrator.on_commit(names, ended)
        if ended and self.orchestrates:
            self._rollup.ended()

    def _chore(self) -> None:
        """Do maintenance work between two ticks of the orchestrator."""
        self._follow_declarations()
        self.runtime.store.counters.flush()
        if not self.orchestrates:
            return
        for task in self._tasks:
            task.tick()

    def _follow_declarations(self) -> None:
        """Start serving jobs, builds and schedules that were declared after the start, as in a notebook."""
        runtime, known = self.runtime, self._count_declared()
        if known == self._known:
            return
        self.jobs[:] = runtime.jobs.served()
        if self._follows_queues:
            self.queues[:] = _queues(runtime)
            self.served[:] = _served(self.queues)
        registration.update(runtime, self)
        self._known = known
        self._loop.want_claim()

    def _count_declared(self) -> tuple[int, int]:
        """Return a value that changes whenever a job, build, pipeline or schedule is declared."""
        return self.runtime.jobs.declared, len(self.declarations.schedules)

    def _on_pulse(self, pulse: Pulse) -> None:
        if pulse.ready:
            self._loop.want_claim()
        if pulse.cancels:
            self._cancel_requested()
        if pulse.drains and not self._stopping.is_set():
            log.info("worker %s was asked to drain: it finishes its runs, claims no more, and stops", self.id)
            self.drained = True
            self.request_stop()

    def _cancel_requested(self) -> None:
        for row in self.runtime.read(lambda tx: tx.all("find_cancels", holder=self.id)):
            running = self.in_flight.get(row["run_id"], row["claim"])
            if running is not None:
                running.stop("cancel", row["cancel_reason"] or "cancelled")

    # Leases that were lost or are about to be lost

    def _taken_over(self, running: RunInFlight) -> None:
        if running.executing and not running.can_be_killed:
            self._unsafe(f"run {running.lease.run_id} was taken over, but its function is still executing")

    def _unsafe(self, reason: str) -> None:
        if self.restart is not None and self.in_flight.guardian.memory is not None:
            self.in_flight.guardian.close()  # first, so that the guardian does not kill this process as well
            log.error("restarting worker %s at once: %s", self.id, reason)
            self.restart()

    # Stopping

    def _nothing_left(self) -> bool:
        """For `drain`: whether no run that this worker could execute is ready, due, or waiting to be promoted."""
        try:
            left = self.runtime.read(
                lambda tx: tx.one("anything_left", queues=self.served, jobs=self.runtime.jobs.served(), now=tx.now)
            )
        except (StoreBusy, StoreUnavailable) as error:
            self._loop.back_off(error)
            return False
        return left is None

    def _drained(self, grace: timedelta) -> bool:
        give_up_at = self.runtime.clock.elapsed() + grace.total_seconds()
        while self.alive and self.runtime.clock.elapsed() < give_up_at:
            assert self._thread is not None
            self._thread.join(min(0.05, grace.total_seconds()))
        return not self.alive

    def _close(self) -> None:
        self._scheduler.close()
        for running in self.in_flight.all():  # there are some only if an error stopped the worker
            running.stop("lost", "the worker has stopped")
        self._stopped.set()
        self._orchestrator.signal.set()
        self._leave()
        logging.getLogger().removeHandler(self._run_log)
        self._listener.stop()
        self._orchestrating.join(timeout=5)
        self._heartbeat.stop()
        self._deadlines.stop()
        self.in_flight.guardian.close()
        self._loop.close()
        self.declarations.polls.pop(self.id, None)
        self.runtime.store.counters.flush(at_once=True)
        try:
            self.runtime.do(lambda tx: workers.remove(tx, self.id))
        except Exception as error:
            log.warning("could not remove the row of worker %s: %s", self.id, error)
        self._lock.close()


def _contended(runtime: Runtime, event_buffer: EventBuffer, error: StoreBusy) -> None:
    event_buffer.contended(error, at=runtime.clock.now())


def _check_role(worker: Worker, queues: Sequence[str] | None, concurrency: int | None) -> None:
    """Refuse an unknown role, and one that contradicts the other arguments."""
    if worker.role not in ROLES:
        raise InvalidPolicy(f"role must be one of {', '.join(ROLES)}, not {worker.role!r}")
    if worker.runtime.settings.single_process and worker.role != "both":
        raise InvalidPolicy("with single_process, the one worker must also orchestrate: role must be 'both'")
    if not worker.claims and (queues is not None or concurrency is not None or worker.drain):
        raise InvalidPolicy("role 'orchestrator' claims no runs, so queues, concurrency and drain can't be given")


def _named(queues: Sequence[str]) -> list[str]:
    """Return the given queue names as a list. A string is one name."""
    names = [queues] if isinstance(queues, str) else list(queues) if isinstance(queues, Iterable) else []
    if not names:
        raise InvalidPolicy(f"queues must name at least one queue, not {queues!r}")
    for name in names:
        check_name(name, what="each name in queues")
    return names


def _served(queues: Sequence[str]) -> list[str]:
    return [*([] if OPERATIONS in queues else [OPERATIONS]), *queues]


def _queues(runtime: Runtime) -> list[str]:
    """Return the queues to serve by default: those of the settings if set, else `default` and the queues of builds.

    The queues of builds come first, because other runs wait for builds.
    """
    if "queues" in runtime.settings.model_fields_set:
        return list(runtime.settings.queues)
    builds = {job.options.queue for job in map(runtime.jobs.get, runtime.jobs) if isinstance(job, BuildJob)}
    return [*sorted(builds - set(runtime.settings.queues)), *runtime.settings.queues]
