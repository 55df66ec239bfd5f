"""Holdfast: the public API. Each method opens a transaction and calls one verb.

What a process that only declares and submits jobs never needs is imported where it is used.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from holdfast.jobs.arguments import KeySpec
from holdfast.jobs.decorator import Decorator, decorator
from holdfast.jobs.job import Isolation, Job
from holdfast.jobs.options import Options, checked_policy
from holdfast.jobs.registry import BULK, Registry
from holdfast.jobs.submitter import Submitter
from holdfast.runs.handle import Run, RunLike, id_of
from holdfast.runs.result_waiter import Waiter
from holdfast.runtime import Runtime
from holdfast.store.notifier import Notifier
from holdfast.support import json_text
from holdfast.support.clock import Clock, SystemClock
from holdfast.support.errors import InvalidArguments, InvalidPolicy, InvalidSetting
from holdfast.support.ids import Ids
from holdfast.support.redaction import Redactor
from holdfast.support.threads import Threads
from holdfast.support.validation import as_duration, check_limit, is_number, job_name
from holdfast.values.policies import Policy, Unique
from holdfast.values.retries import Retry
from holdfast.worker.declarations import Declarations

if TYPE_CHECKING:
    from fastapi import APIRouter, Request

    from holdfast.artifacts.artifacts import Artifacts
    from holdfast.artifacts.backends.base import ArtifactStore
    from holdfast.builds.builds import Builds
    from holdfast.builds.decorator import BuildDecorator
    from holdfast.operate.bulk import Bulk
    from holdfast.operate.doctor import Check
    from holdfast.operate.run_details import Dossier
    from holdfast.pipelines.pipeline import Pipeline
    from holdfast.pipelines.pipelines import Pipelines
    from holdfast.runs.limits.keys import Keys
    from holdfast.runs.limits.queues import DeclaredLimits, Queues
    from holdfast.runs.retention import Removed
    from holdfast.runs.workers import Workers
    from holdfast.schedules.decorator import Scheduling
    from holdfast.schedules.definitions import Schedule
    from holdfast.schedules.schedules import Schedules
    from holdfast.statistics.statistics import Statistics
    from holdfast.store.dialects.backup import Backup, Progress
    from holdfast.tokens import Passes
    from holdfast.values.audit import Operation
    from holdfast.values.events import Event, Events, News, Signs
    from holdfast.values.filters import Count, Order, RunFilter
    from holdfast.values.logs import Logs
    from holdfast.values.pages import SearchPage
    from holdfast.values.runs import Finding, Snapshot, Step, Why
    from holdfast.web.auth.authentication import Who
    from holdfast.worker.declarations import FailureHook
    from holdfast.worker.worker import Role, Worker


class Holdfast(Runtime):
    """Background work on the database you already have.

        hf = Holdfast("sqlite:///work.db")        # postgresql://…  mssql://…

        @hf.job(key="document_id", timeout=120)
        def process(ctx: Context, document_id: str) -> dict: ...

        run = process.submit(document_id="doc-1")

    Each noun has a namespace: hf.artifacts, hf.builds, hf.bulk, hf.keys, hf.passes,
    hf.pipelines, hf.queues, hf.schedules, hf.statistics, hf.workers.

    Keyword arguments are settings (see `holdfast.Settings`); `HOLDFAST_*` variables set what is not given.
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
        from holdfast.support import settings

        self.waiter = Waiter(self._find_ended, self._find_snapshots)
        notifier = Notifier()
        notifier.listen(self.waiter.ended)
        super().__init__(
            settings.load({"url": url, **given}),
            clock=clock or SystemClock(),
            ids=ids or Ids(),
            jobs=Registry(),
            notifier=notifier,
            redactor=Redactor(redact),
            engine=engine,
        )
        self._submitter = Submitter(self, self)
        self.scheduled: dict[str, Schedule] = {}
        self._declarations = Declarations(schedules=self.scheduled, artifact_store=lambda: self._artifact_store)
        self.polls = self._declarations.polls
        self.jobs.bring({name: partial(self._bulk_job, name) for name in BULK})

    def _prepare(self) -> None:
        if "_limits" in vars(self) or self.settings.max_queued is not None:
            self._limits.apply(self._store)

    @cached_property
    def _limits(self) -> DeclaredLimits:
        from holdfast.runs.limits.queues import DeclaredLimits
        from holdfast.values.queues import Limits

        limits = DeclaredLimits()
        if self.settings.max_queued is not None:
            limits.add("*", Limits(max_queued=self.settings.max_queued))
        return limits

    def _find_ended(self, run_ids: Sequence[str]) -> set[str]:
        from holdfast.runs.snapshot import find_ended

        return self.store.once(lambda tx: find_ended(tx, run_ids), write=False)

    def _find_snapshots(self, run_ids: Sequence[str]) -> list[Snapshot]:
        from holdfast.runs.snapshot import find_snapshots

        return self.store.once(lambda tx: find_snapshots(tx, run_ids), write=False)

    def _bulk_job(self, name: str) -> Job[..., Any]:
        from holdfast.operate.bulk import job

        return job(self._submitter, name)

    @cached_property
    def _artifact_store(self) -> ArtifactStore:
        from holdfast.artifacts.backends import open_artifact_store

        return open_artifact_store(self.settings.artifacts)

    # Namespaces

    @cached_property
    def artifacts(self) -> Artifacts:
        """Files that runs have made."""
        from holdfast.artifacts.artifacts import Artifacts

        return Artifacts(self, lambda: self._artifact_store)

    @cached_property
    def builds(self) -> Builds:
        """Builds: read, invalidate and rebuild them."""
        from holdfast.builds.builds import Builds

        return Builds(self, self.get)

    @cached_property
    def bulk(self) -> Bulk:
        """Cancel or run again all runs that match a filter, in the background."""
        from holdfast.operate.bulk import Bulk

        return Bulk(self, self.get)

    @cached_property
    def keys(self) -> Keys:
        """Keys: who holds them, and how many wait."""
        from holdfast.runs.limits.keys import Keys

        return Keys(self)

    @cached_property
    def passes(self) -> Passes:
        """Tokens of the HTTP API and the dashboard."""
        from holdfast.tokens import Passes

        return Passes(self)

    @cached_property
    def pipelines(self) -> Pipelines:
        """Pipelines: how far they are, and how to rerun one."""
        from holdfast.pipelines.pipelines import Pipelines

        return Pipelines(self, self.get)

    @cached_property
    def queues(self) -> Queues:
        """Queues: pause, resume and limit them."""
        from holdfast.runs.limits.queues import Queues

        return Queues(self)

    @cached_property
    def schedule(self) -> Scheduling:
        """`@hf.schedule(…)`: start a job by the clock."""
        from holdfast.schedules.decorator import Scheduling

        return Scheduling(self._submitter, self.scheduled, self.job)

    @cached_property
    def schedules(self) -> Schedules:
        """Schedules: list, pause, resume and trigger them."""
        from holdfast.schedules.schedules import Schedules

        return Schedules(self, self.scheduled, self.get)

    @cached_property
    def statistics(self) -> Statistics:
        """Figures: what ended, what waits, what fails."""
        from holdfast.statistics.statistics import Statistics

        return Statistics(self, self.polls)

    @cached_property
    def workers(self) -> Workers:
        """Live workers: what they run, and how to drain one."""
        from holdfast.runs.workers import Workers

        return Workers(self)

    # Declaring

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
        return decorator(self._submitter, name=name, options=options, isolation=isolation)

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
        """Make a function a build: it runs once for each scope and `fingerprint` (one of its parameters).

        scope     what the fingerprint belongs to, spelled like a key; all other parameters, if it is not given
        **policy  any field of Policy. A build whose worker is lost is made once more; lost again, it fails
        """
        from holdfast.builds.decorator import build_decorator, build_policy

        if bare is not None:
            raise InvalidPolicy("write @hf.build() with its parentheses")
        given = {"on_crash": "requeue", "max_takeovers": 1} | policy | {"timeout": as_duration(timeout)}
        options = Options(queue=queue, priority=priority, policy=build_policy(given))
        return build_decorator(self._submitter, name=name, scope=scope, options=options, isolation=isolation)

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
        from holdfast.values.queues import Limits

        if per_worker is not None and not is_number(per_worker, least=1):
            raise InvalidPolicy("per_worker is a whole number of at least 1, or None for all of a worker's places")
        said = {"max_queued": max_queued, "concurrency": concurrency}
        self._limits.add(name, Limits(**{which: limit for which, limit in said.items() if limit is not None}))
        if per_worker is not None:
            self._declarations.per_worker[name] = per_worker
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
        from holdfast.pipelines.pipeline import Pipeline

        policy = Policy(only_from_code=only_from_code, start_at=start_at)
        pipeline = Pipeline(self._submitter, name, queue=queue, priority=priority, policy=policy)
        self.jobs.add(pipeline)
        return pipeline

    def on_failure(self, hook: FailureHook) -> FailureHook:
        """Decorate a function to be told of every run that a worker of this process sees fail."""
        self._declarations.failure_hooks.append(hook)
        return hook

    # Working

    def worker(
        self,
        *,
        queues: Sequence[str] | None = None,
        concurrency: int | None = None,
        exclusive: str | None = None,
        unknown: Literal["leave", "fail"] = "leave",
        drain: bool = False,
        role: Role = "both",
        schedules: bool | None = None,
    ) -> Worker:
        """A worker of this process: `with hf.worker(): …`, or `.start()` and `.stop()`.

        Not told its queues, it serves those of the settings, and those of the application's builds. It orchestrates,
        too, unless its role says otherwise. It claims slots of schedules as `schedules` says, or else the setting.
        """
        from holdfast.worker.worker import Worker

        return Worker(
            self,
            self._declarations,
            queues=queues,
            concurrency=concurrency,
            exclusive=exclusive,
            unknown=unknown,
            drain=drain,
            role=role,
            schedules=schedules,
        )

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """`FastAPI(lifespan=hf.lifespan)`: a worker runs from the application's start to its end."""
        worker = self.worker()
        # A thread of its own: while the worker stops, its async jobs may need all others.
        threads = Threads("holdfast-lifespan", limit=1)
        await threads.run(worker.start)
        try:
            yield
        finally:
            await threads.run(worker.stop)

    def router(
        self,
        *,
        token: str | None = None,
        access: Callable[[Request], Who | None] | None = None,
        sign_in: str | None = None,
    ) -> APIRouter:
        """The API and the dashboard, for an application of yours: `app.include_router(hf.router(), prefix="/hf")`.

        token     its bearer is an admin; the default is the setting
        access    a function of yours that says who a request is from (a `holdfast.web.Who`, or None), instead of passes
        sign_in   where people sign in whom it does not know
        """
        try:
            from holdfast.web.site import Site
        except ImportError as error:
            raise InvalidSetting(f"{error}; the web side needs: pip install 'holdfast[web]'") from error
        return Site(self, token=token, access=access, sign_in=sign_in).router()

    # Submitting and steering

    def submit(self, job: Job[..., Any] | str, /, **kwargs: Any) -> Run[Any]:
        """Queue a run of a job by its name."""
        return self.jobs[job_name(job)].submit(**kwargs)

    def get(self, run: RunLike) -> Run[Any]:
        """A run by its id, or RunNotFound."""
        snapshot = self.snapshot(run)
        job = self.jobs.get(snapshot.job)
        decode = json_text.load if job is None else job.arguments.decode_result
        return Run(self, snapshot.id, decode=decode, snapshot=snapshot)

    def cancel(self, run: RunLike, *, reason: str = "cancelled", by: str | None = None) -> str:
        """End a run that has not started; ask a running one to stop. Its state afterwards. `by` says who asks."""
        from holdfast.runs.cancel import cancel_by_hand

        return self.do(lambda tx: cancel_by_hand(tx, id_of(run), reason=reason, by=by))

    def again(self, run: RunLike, *, by: str | None = None) -> Run[Any]:
        """A new run of the same job with the same arguments, which names the one it repeats."""
        from holdfast.operate.run_again import run_again

        return self.get(self.do(lambda tx: run_again(tx, id_of(run), by=by, allowed=self.jobs.require_open)))

    def delete(self, run: RunLike, *, by: str | None = None, dry_run: bool = False) -> Removed:
        """Delete a run that has ended with its stages, segments and children, their artifacts and events; how much.

        RunInUse, and nothing is deleted, while one of them has not ended or something else names it: a rerun, a need,
        a build, a slot. With `dry_run` nothing is deleted either way.
        """
        from holdfast.orchestrator import prune

        return prune.delete(self.store, self._artifact_store, id_of(run), by=by, dry_run=dry_run)

    # Reading

    def snapshot(self, run: RunLike) -> Snapshot:
        """A run as it stands, or RunNotFound."""
        from holdfast.runs.snapshot import get_snapshot

        return self.read(lambda tx: get_snapshot(tx, id_of(run)))

    def story(self, run: RunLike) -> list[Event]:
        """Everything that happened to a run, in order."""
        from holdfast.operate.timeline import story

        return self.read(lambda tx: story(tx, id_of(run)))

    def why(self, run: RunLike) -> Why:
        """Where a run stands, and what it waits for."""
        from holdfast.operate.explain import explain

        return self.read(lambda tx: explain(tx, id_of(run)))

    def dossier(self, run: RunLike) -> Dossier:
        """All that a page about a run shows: why it is where it is, its newest events, its steps, who it belongs to."""
        from holdfast.operate import run_details

        return self.read(lambda tx: run_details.of(tx, id_of(run)))

    def recorded(self, run: RunLike, *, after: int = 0, limit: int = 500) -> list[tuple[int, Event]]:
        """What was recorded of a run (its log among it) after that number, each with its own."""
        from holdfast.runs import events

        check_limit(limit)
        return self.read(lambda tx: events.of(tx, id_of(run), after=after, limit=limit))

    def search(
        self,
        filter: RunFilter | None = None,
        *,
        limit: int = 50,
        after: str | None = None,
        order: Order = "newest",
        before: RunLike | None = None,
    ) -> SearchPage[Snapshot]:
        """The runs that a filter means, the newest first; `after` is the `next` of the page before.

        Of runs that have ended, who ended last is the newest; with `order="submitted"` who was submitted last is.
        `before` leaves out that run and all that were submitted after it.
        At most 10,000 runs are looked at for a page, so it may have few runs, or none, and still have a next one.
        """
        from holdfast.operate.search import search_runs

        check_limit(limit)
        bound = "~" if before is None else id_of(before)
        return self.read(
            lambda tx: search_runs(tx, _checked(filter), limit=limit, after=after, bound=bound, order=order)
        )

    def count(self, filter: RunFilter | None = None) -> Count:
        """How many runs a filter means, if 10,000 of them tell."""
        from holdfast.operate.search import count_runs

        return self.read(lambda tx: count_runs(tx, _checked(filter)))

    def counts(self, filter: RunFilter | None = None) -> Mapping[str, Count]:
        """How many runs of each state a filter means; its own state does not count."""
        from holdfast.operate.search import count_states

        return self.read(lambda tx: count_states(tx, _checked(filter).without_state))

    def news(self, run: RunLike, *, after: str | None = None, limit: int = 1000) -> News:
        """What has happened to a run since a cursor, which came with the last event that was told."""
        from holdfast.operate.timeline import news

        check_limit(limit)
        return self.read(lambda tx: news(tx, id_of(run), after=after, limit=limit))

    def marks(self, runs: Sequence[RunLike]) -> Mapping[str, str]:
        """For each run, by its id, a short text that is another one whenever there may be news of it."""
        from holdfast.operate.timeline import marks

        return self.read(lambda tx: marks(tx, [id_of(run) for run in runs]))

    def signs(self) -> Signs:
        """Short texts that are other ones whenever anything has changed: cheap to ask for, often."""
        from holdfast.operate.timeline import signs

        return self.read(signs)

    def events(self, *, after: str | None = None, kinds: Collection[str] | None = None, limit: int = 1000) -> Events:
        """What was recorded of all runs since a cursor, and the cursor to go on from. No event is left out."""
        from holdfast.runs import events

        check_limit(limit)
        return self.read(lambda tx: events.everywhere(tx, after=after, kinds=kinds, limit=limit))

    def events_end(self) -> str:
        """The cursor after which `events` tells only what is recorded from now on."""
        from holdfast.runs import events

        return self.read(events.end)

    def logs(
        self, run: RunLike, *, level: str = "DEBUG", text: str | None = None, after: str | None = None, limit: int = 500
    ) -> Logs:
        """A run's log: records of at least this level that contain this text; `after` is the `next` of the page before.

        At most 10,000 of its events are looked at for a page.
        """
        from holdfast.operate import logs

        check_limit(limit)
        return self.read(lambda tx: logs.of(tx, id_of(run), level=level, text=text, after=after, limit=limit))

    def steps(self, run: RunLike) -> Sequence[Step]:
        """The steps that a run has done and remembers, in order; `result` is JSON text."""
        from holdfast.runs import steps
        from holdfast.runs.snapshot import get_snapshot

        return self.read(lambda tx: steps.of(tx, get_snapshot(tx, id_of(run)).id))

    def beginning(self, text: str, *, limit: int = 3) -> Sequence[str]:
        """The ids of runs that begin like that, the oldest first."""
        from holdfast.runs.snapshot import find_ids

        check_limit(limit)
        return self.read(lambda tx: find_ids(tx, text, limit=limit))

    def operations(self, *, limit: int = 50, before: str | None = None) -> Sequence[Operation]:
        """Who did what by hand, the newest first; `before` is the cursor of the last one of the page before."""
        from holdfast.runs import audit

        check_limit(limit)
        return self.read(lambda tx: audit.listed(tx, limit=limit, before=before))

    # The database

    def verify(self, *, artifacts: bool = False) -> list[Finding]:
        """Check on the live database that every run is in exactly one place, and more; what is wrong.

        With `artifacts` every artifact's file is read too, and compared with its checksum.
        """
        from holdfast.operate import doctor
        from holdfast.operate.verify import verify

        found = verify(self.store, lease=self.settings.lease)
        return found + (doctor.artifacts(self.store, self._artifact_store) if artifacts else [])

    def retain(self, *, now: datetime | None = None, dry_run: bool = False) -> Removed:
        """Remove what has ended longer ago than the settings keep it, as workers do now and then; how much it was."""
        from holdfast.orchestrator import prune
        from holdfast.runs import retention
        from holdfast.runs.retention import Removed

        limits = retention.limits(self.settings, now or self.clock.now())
        steps = prune.steps(self.store, self._artifact_store, limits, cursors={}, dry_run=dry_run)
        return sum(steps, start=Removed())

    def backup(self, path: str | Path, *, progress: Progress = lambda copied, total: None) -> Backup:
        """Copy a SQLite database to a new file while workers and servers go on; the copy is checked.

        `progress` is called with the pages that were copied and the pages in all.
        """
        return self._store.backup(Path(path), progress=progress)

    def migrate(self) -> int:
        """Create or update the tables; how many migrations were applied."""
        from holdfast.store import connect, migrate

        return migrate.migrate(self._store, prefix=connect.prefix(self.settings, self._store.dialect))

    def migration(self, *, since: int | None = None) -> list[str]:
        """The statements that `migrate` would apply, in order; `since` names a version and asks no database."""
        from holdfast.store import connect, migrate

        return migrate.script(self._store, prefix=connect.prefix(self.settings, self._store.dialect), since=since)

    def checkup(self) -> list[Check]:
        """What this Holdfast stands on: versions, clock, tables, workers; each with advice where it needs some."""
        from holdfast.operate import doctor

        return doctor.check(self._store, self.settings)

    def include_object(self, object: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
        """For Alembic's `context.configure(include_object=hf.include_object)`: our tables are not yours to migrate."""
        table = name if type_ == "table" else getattr(getattr(object, "table", None), "name", None)
        return not (table or "").startswith(self.settings.prefix)


def _checked(filter: RunFilter | None) -> RunFilter:
    from holdfast.values.filters import RunFilter

    if filter is None:
        return RunFilter()
    if not isinstance(filter, RunFilter):
        raise InvalidArguments(f"a filter is a RunFilter, not {filter!r}")
    return filter
