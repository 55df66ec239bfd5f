"""Engine: `Holdfast`, the door's object. Each method opens a transaction and calls one verb."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any, Self, TypeVar

from holdfast.artifacts.artifacts import Artifacts
from holdfast.artifacts.backends import open_artifact_store
from holdfast.artifacts.backends.base import ArtifactStore
from holdfast.builds.builds import Builds
from holdfast.builds.decorator import BuildDecorator, build_policy
from holdfast.doors.looking import Looking
from holdfast.doors.upkeep import Upkeep
from holdfast.jobs.arguments import KeySpec
from holdfast.jobs.decorator import Decorator, decorator
from holdfast.jobs.importing import refuse_import
from holdfast.jobs.job import Isolation, Job
from holdfast.jobs.options import Options, checked_policy
from holdfast.jobs.registry import Registry
from holdfast.jobs.submitter import Submitter
from holdfast.operate import bulk
from holdfast.operate.bulk import Bulk
from holdfast.operate.run_again import run_again
from holdfast.orchestrator import prune
from holdfast.pipelines.pipeline import Pipeline
from holdfast.pipelines.pipelines import Pipelines
from holdfast.runs.cancel import cancel_by_hand
from holdfast.runs.handle import Run, RunLike, id_of
from holdfast.runs.limits.keys import Keys
from holdfast.runs.limits.queues import DeclaredLimits, Queues
from holdfast.runs.result_waiter import Waiter
from holdfast.runs.retention import Removed
from holdfast.runs.snapshot import find_ended, find_snapshots
from holdfast.runs.workers import Workers
from holdfast.schedules.decorator import Scheduling
from holdfast.schedules.definitions import Schedule
from holdfast.schedules.schedules import Schedules
from holdfast.statistics.statistics import Statistics
from holdfast.store import connect, migrate, outages
from holdfast.store.counters import Counting
from holdfast.store.notifier import Notifier
from holdfast.store.store import Store
from holdfast.store.transaction import Transaction
from holdfast.support import settings
from holdfast.support.clock import Clock, SystemClock
from holdfast.support.errors import InvalidPolicy
from holdfast.support.ids import Ids
from holdfast.support.redaction import Redactor
from holdfast.support.validation import as_duration, is_number, job_name
from holdfast.tokens import Passes
from holdfast.values.policies import Policy, Unique
from holdfast.values.queues import Limits
from holdfast.values.retries import Retry
from holdfast.values.runs import Snapshot

R = TypeVar("R")
T = TypeVar("T")

FailureHook = Callable[[Snapshot], None]


class Holdfast(Looking, Upkeep):
    """Background work on the database you already have.

        hf = Holdfast("sqlite:///work.db")        # postgresql://…  mssql://…

        @hf.job(key="document_id", timeout=120)
        def process(ctx: Context, document_id: str) -> dict: ...

        run = process.submit(document_id="doc-1")

    What there is besides runs has a door of its own: hf.artifacts, hf.builds, hf.bulk, hf.keys, hf.passes,
    hf.pipelines, hf.queues, hf.schedules, hf.statistics, hf.workers.

    Keyword arguments are settings (see `holdfast.settings.Settings`); `HOLDFAST_*` variables set what is not given.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        engine: Any = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        redact: Iterable[str] = (),
        **given: Any,
    ) -> None:
        self.settings = settings.load({"url": url, **given})
        self.clock: Clock = clock or SystemClock()
        self.ids = ids or Ids()
        self.jobs = Registry()
        self.scheduled: dict[str, Schedule] = {}
        self.redactor = Redactor(redact)
        self.failure_hooks: list[FailureHook] = []
        self.wakeups = Notifier()
        self.waiter = Waiter(
            lambda run_ids: self.store.once(lambda tx: find_ended(tx, run_ids), write=False),
            lambda run_ids: self.store.once(lambda tx: find_snapshots(tx, run_ids), write=False),
        )
        self.wakeups.listen(self.waiter.ended)
        self.counting = Counting(self.clock)
        self.polls: dict[str, float] = {}
        """Each worker of this process, and when it last looked for work and the database answered (`clock.elapsed`)."""
        self._submitter = Submitter(self)
        self._starting = threading.Lock()
        self.started = False
        self.artifacts = Artifacts(self)
        self.builds = Builds(self)
        self.pipelines = Pipelines(self)
        self.schedule = Scheduling(self)
        self.schedules = Schedules(self)
        self.statistics = Statistics(self)
        self.queues = Queues(self)
        self._limits = DeclaredLimits()
        self.per_worker: dict[str, int] = {}
        """How many of a queue's runs one worker runs at once, by `hf.queue`."""
        self.keys = Keys(self)
        self.bulk = Bulk(self)
        self.jobs.bring(bulk.jobs(self))
        self.passes = Passes(self)
        self.workers = Workers(self)
        if self.settings.max_queued is not None:
            self._limits.add("*", Limits(max_queued=self.settings.max_queued))
        self._open(engine)

    def _open(self, engine: Any) -> None:
        """Choose the database; nothing connects yet."""
        self._use(connect.open_store(self.settings, engine=engine, clock=self.clock, ids=self.ids))

    def _use(self, store: Store) -> None:
        store.on_commit = self.wakeups.committed
        store.on_counted = self.counting.add_all
        self.wakeups.announce_by(store.announce if store.dialect.announces else None)
        self._store = store

    # What runs are made of

    def job(
        self,
        bare: None = None,
        /,
        *,
        name: str | None = None,
        queue: str = "default",
        priority: int = 0,
        key: KeySpec | None = None,
        timeout: timedelta | float | None = 120,
        max_attempts: int = 1,
        retry: Retry | None = None,
        on_crash: str | None = None,
        on_shutdown: str = "hand_back",
        on_timeout: str = "end",
        max_takeovers: int = 5,
        key_order: str = "due",
        key_limit: int = 1,
        audit: bool = False,
        rate: str | None = None,
        rate_name: str | None = None,
        rate_key: KeySpec | None = None,
        unique: Unique | None = None,
        only_from_code: bool = False,
        start_at: str | None = None,
        isolation: Isolation | None = None,
    ) -> Decorator:
        """Make a function a job. The defaults are those of Policy; `using` changes them for one submission.

        key        a parameter's name, a template like "{tenant}/{id}", or a function: at most one run of a key runs
        rate       at most so many starts: "10/min", "100/30s"; for each `rate_key` (spelled like a key), if given;
                   or of all jobs that say the same `rate_name`
        unique     "queued": a submission gives back the run of the same key (or arguments) that has not started
        isolation  "thread" (default), "async" (for async functions), or "process": killable, whatever it does

        With `only_from_code=True` runs are started by `submit` in the application's code alone. The HTTP API, the
        dashboard and the command line refuse to submit one, and `again` refuses to repeat one; the error names
        `start_at`, the address of the application's page that starts them.
        """
        if bare is not None:
            raise InvalidPolicy("write @hf.job() with its parentheses")
        policy = Policy(
            **checked_policy(
                {
                    "timeout": as_duration(timeout),
                    "max_attempts": max_attempts,
                    "retry": retry or Retry(),
                    "on_crash": on_crash or ("fail" if self.settings.solo else "requeue"),
                    "on_shutdown": on_shutdown,
                    "on_timeout": on_timeout,
                    "max_takeovers": max_takeovers,
                    "key_order": key_order,
                    "key_limit": key_limit,
                    "audit": audit,
                    "rate": rate,
                    "rate_name": rate_name,
                    "only_from_code": only_from_code,
                    "start_at": start_at,
                }
            )
        )
        options = Options(queue=queue, priority=priority, key=key, policy=policy, rate_key=rate_key, unique=unique)
        return decorator(self, name=name, options=options, isolation=isolation)

    def build(
        self,
        bare: None = None,
        /,
        *,
        name: str | None = None,
        scope: KeySpec | None = None,
        queue: str = "builds",
        priority: int = 0,
        timeout: timedelta | float | None = 600,
        isolation: Isolation | None = None,
        **policy: Any,
    ) -> BuildDecorator:
        """Make a function a build: made once for each scope and `fingerprint` (a parameter of it), whoever asks.

        scope     what the fingerprint belongs to, spelled like a key; all other parameters, if it is not given
        **policy  any field of Policy. A build whose worker is lost is made once more; lost again, it fails
        """
        if bare is not None:
            raise InvalidPolicy("write @hf.build() with its parentheses")
        given = {"on_crash": "requeue", "max_takeovers": 1} | policy | {"timeout": as_duration(timeout)}
        options = Options(queue=queue, priority=priority, policy=build_policy(given))
        return BuildDecorator(self, name=name, scope=scope, options=options, isolation=isolation)

    def queue(
        self,
        name: str,
        *,
        max_queued: int | None = None,
        concurrency: int | None = None,
        per_worker: int | None = None,
    ) -> None:
        """Limit a queue, for every process: runs that are queued or running, and runs at once. None says nothing.

        `per_worker` is for each worker of this Holdfast by itself: of its places, so many at most run this queue.
        """
        if per_worker is not None and not is_number(per_worker, least=1):
            raise InvalidPolicy("per_worker is a whole number of at least 1, or None for all of a worker's places")
        said = {"max_queued": max_queued, "concurrency": concurrency}
        self._limits.add(name, Limits(**{which: limit for which, limit in said.items() if limit is not None}))
        if per_worker is not None:
            self.per_worker[name] = per_worker
        if self.started:
            self._limits.apply(self._store)

    def pipeline(
        self,
        name: str,
        /,
        *,
        queue: str | None = None,
        priority: int = 0,
        only_from_code: bool = False,
        start_at: str | None = None,
    ) -> Pipeline:
        """A pipeline whose stages are declared by `@pipeline.stage()`; `queue` and `priority` are its stages' too.

        `only_from_code` and `start_at` are those of `job`: reruns are refused too.
        """
        policy = Policy(only_from_code=only_from_code, start_at=start_at)
        pipeline = Pipeline(self, name, queue=queue, priority=priority, policy=policy)
        self.jobs.add(pipeline)
        return pipeline

    def on_failure(self, hook: FailureHook) -> FailureHook:
        """Decorate a function to be told of every run that a worker of this process sees fail."""
        self.failure_hooks.append(hook)
        return hook

    # Submitting

    def submit(self, job: Job[..., Any] | str, /, **kwargs: Any) -> Run[Any]:
        """Queue a run of a job by its name."""
        return self.jobs[job_name(job)].submit(**kwargs)

    def submit_job(
        self,
        job: Job[..., R],
        options: Options,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        by: str | None = None,
    ) -> Run[R]:
        return Run(self, self._submitter.submit(job, options, args, kwargs, by=by), job, None)

    async def asubmit_job(
        self, job: Job[..., R], options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Run[R]:
        return Run(self, await self._submitter.asubmit(job, options, args, kwargs), job, None)

    def submit_jobs(self, job: Job[..., R], options: Options, many: Iterable[Mapping[str, Any]]) -> list[Run[R]]:
        return [Run(self, run_id, job, None) for run_id in self._submitter.submit_many(job, options, many)]

    async def asubmit_jobs(self, job: Job[..., R], options: Options, many: Iterable[Mapping[str, Any]]) -> list[Run[R]]:
        return [Run(self, run_id, job, None) for run_id in await self._submitter.asubmit_many(job, options, many)]

    # Looking and steering

    def get(self, run: RunLike) -> Run[Any]:
        """A run by its id, or RunNotFound."""
        snapshot = self.snapshot(run)
        return Run(self, snapshot.id, self.jobs.get(snapshot.job), snapshot)

    def cancel(self, run: RunLike, *, reason: str = "cancelled", by: str | None = None) -> str:
        """End a run that has not started; ask a running one to stop. Its state afterwards. `by` says who asks."""
        return self.do(lambda tx: cancel_by_hand(tx, id_of(run), reason=reason, by=by))

    def again(self, run: RunLike, *, by: str | None = None) -> Run[Any]:
        """A new run of the same job with the same arguments, which names the one it repeats."""
        return self.get(self.do(lambda tx: run_again(tx, id_of(run), by=by, allowed=self.jobs.require_open)))

    def delete(self, run: RunLike, *, by: str | None = None, dry_run: bool = False) -> Removed:
        """Delete a run that has ended with its stages, segments and children, their artifacts and events; how much.

        RunInUse, and nothing is deleted, while one of them has not ended or something else names it: a rerun, a need,
        a build, a slot. With `dry_run` nothing is deleted either way.
        """
        return prune.delete(self.store, self.depot, id_of(run), by=by, dry_run=dry_run)

    # Inside

    @cached_property
    def depot(self) -> ArtifactStore:
        """Where artifacts lie."""
        return open_artifact_store(self.settings.artifacts)

    @property
    def store(self) -> Store:
        self.start()
        return self._store

    def start(self, *, wait: timedelta | float = 0) -> None:
        """Connect and see that the tables are there. Called by everything that needs them.

        `wait` is how long to wait for a database that restarts or is not up yet.
        """
        if not self.started:
            outages.outlast(self._start, wait=as_duration(wait), clock=self.clock)

    def _start(self) -> None:
        with self._starting:
            if not self.started:
                prefix = connect.prefix(self.settings, self._store.dialect)
                (migrate.migrate if self.settings.migrate else migrate.check)(self._store, prefix=prefix)
                self._store.follow_clock()
                self._limits.apply(self._store)
                self.started = True

    def do(self, verb: Callable[[Transaction], T]) -> T:
        return self.store.do(verb)

    def read(self, verb: Callable[[Transaction], T]) -> T:
        return self.store.read(verb)

    def close(self) -> None:
        self.counting.flush(self._store, at_once=True)
        self.wakeups.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def call_inline(self, job: Job[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a job's function in the caller's own thread, without a run. Its result is checked as a run's would be."""
        from holdfast.jobs.inline import InlineContext

        refuse_import(f"runs {job.name}")
        given = job.arguments.named(args, kwargs)
        if job.arguments.context_name is not None:
            given[job.arguments.context_name] = InlineContext(job, now=self.clock.now(), retry=job.options.policy.retry)
        value = job.fn(**given)
        return self._acalled(job, value) if inspect.iscoroutine(value) else self._called(job, value)

    def _called(self, job: Job[..., Any], value: Any) -> Any:
        return job.encode_result(value, max_bytes=self.settings.max_result_bytes)[1]

    async def _acalled(self, job: Job[..., Any], value: Awaitable[Any]) -> Any:
        return self._called(job, await value)
