"""Holdfast: the public API. Most methods open a transaction and call one function of a package below.

Only the modules that declare and submit jobs are imported here. All others are imported inside the methods that use
them, so that `import holdfast` stays fast.
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
    from holdfast.operate.run_details import RunDetails
    from holdfast.pipelines.pipeline import Pipeline
    from holdfast.pipelines.pipelines import Pipelines
    from holdfast.runs.limits.keys import Keys
    from holdfast.runs.limits.queues import DeclaredLimits, Queues
    from holdfast.runs.retention import Pruned
    from holdfast.runs.workers import Workers
    from holdfast.schedules.decorator import Scheduling
    from holdfast.schedules.definitions import Schedule
    from holdfast.schedules.schedules import Schedules
    from holdfast.statistics.statistics import Statistics
    from holdfast.store.dialects.backup import Backup, Progress
    from holdfast.tokens import Tokens
    from holdfast.values.audit import AuditEntry
    from holdfast.values.events import Event, Events, TimelinePage
    from holdfast.values.filters import Count, Order, RunFilter
    from holdfast.values.logs import Logs
    from holdfast.values.pages import SearchPage
    from holdfast.values.runs import Finding, Snapshot, Step, Why
    from holdfast.web.auth.authentication import Who
    from holdfast.worker.declarations import FailureHook
    from holdfast.worker.worker import Role, Worker


class Holdfast(Runtime):
    """Background jobs stored in the database that you already have.

        hf = Holdfast("sqlite:///work.db")        # postgresql://…  mssql://…

        @hf.job(key="document_id", timeout=120)
        def process(ctx: Context, document_id: str) -> dict: ...

        run = process.submit(document_id="doc-1")

    Further methods are grouped in namespaces: hf.artifacts, hf.builds, hf.bulk, hf.keys, hf.pipelines, hf.queues,
    hf.schedules, hf.statistics, hf.tokens, hf.workers.

    url     the database; default: the setting `url`
    engine  a SQLAlchemy engine to take connections from, instead of a URL
    clock   a clock to use instead of the system's; for tests
    ids     a generator of run ids; for tests
    redact  regular expressions whose first group is hidden in stored errors and logs

    All other keyword arguments are settings (see `holdfast.Settings`). A setting that is not given here is read from
    its `HOLDFAST_*` environment variable.
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
        """Find and open the files that runs have published."""
        from holdfast.artifacts.artifacts import Artifacts

        return Artifacts(self, lambda: self._artifact_store)

    @cached_property
    def builds(self) -> Builds:
        """Read, invalidate and rebuild builds."""
        from holdfast.builds.builds import Builds

        return Builds(self, self.get)

    @cached_property
    def bulk(self) -> Bulk:
        """Cancel, or run again, all runs that match a filter. The work is done by a background run."""
        from holdfast.operate.bulk import Bulk

        return Bulk(self, self.get)

    @cached_property
    def keys(self) -> Keys:
        """List keys: which runs hold each one, and how many wait for it."""
        from holdfast.runs.limits.keys import Keys

        return Keys(self)

    @cached_property
    def tokens(self) -> Tokens:
        """Create, list and revoke tokens for the HTTP API and the dashboard."""
        from holdfast.tokens import Tokens

        return Tokens(self)

    @cached_property
    def pipelines(self) -> Pipelines:
        """Show the progress of pipelines, and rerun one from a stage."""
        from holdfast.pipelines.pipelines import Pipelines

        return Pipelines(self, self.get)

    @cached_property
    def queues(self) -> Queues:
        """List, pause, resume and limit queues."""
        from holdfast.runs.limits.queues import Queues

        return Queues(self)

    @cached_property
    def schedule(self) -> Scheduling:
        """Decorator: run a job at set times, for example `@hf.schedule("0 6 * * *")` or `@hf.schedule(every=60)`."""
        from holdfast.schedules.decorator import Scheduling

        return Scheduling(self._submitter, self.scheduled, self.job)

    @cached_property
    def schedules(self) -> Schedules:
        """List, pause, resume and trigger schedules."""
        from holdfast.schedules.schedules import Schedules

        return Schedules(self, self.scheduled, self.get)

    @cached_property
    def statistics(self) -> Statistics:
        """Count finished, waiting and failed runs, over time and per job."""
        from holdfast.statistics.statistics import Statistics

        return Statistics(self, self.polls)

    @cached_property
    def workers(self) -> Workers:
        """List live workers and the runs that they execute, and drain a worker."""
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
        on_shutdown: str = "release",
        on_timeout: str = "end",
        max_takeovers: int = 5,
        key_order: str = "due",
        key_limit: int = 1,
        keep_forever: bool = False,
        rate: str | None = None,
        rate_name: str | None = None,
        rate_key: KeySpec | None = None,
        unique: Unique | None = None,
        only_from_code: bool = False,
        start_at: str | None = None,
        isolation: Isolation | None = None,
    ) -> Decorator:
        """Turn a function into a job. `job.using(…)` changes most options for a single submission.

        name            the job's name in the database; default: the function's dotted path
        queue           the queue of its runs
        priority        runs with a higher number start first
        key             a parameter's name, a template like "{tenant}/{id}", or a function; at most `key_limit` runs
                        with the same key run at once
        timeout         the time limit of one attempt, in seconds or as a timedelta; None means no limit
        max_attempts    the number of attempts after which the run fails
        retry           the delays between attempts, and the errors that are retried
        on_crash        if the worker is lost: "requeue" the run, "retry" it as a failed attempt, or "fail" it; default:
                        "requeue", or "fail" with the setting `single_process`
        on_shutdown     if the worker shuts down: "release" the run for another worker, or "fail" it
        on_timeout      if an attempt times out: "end" the run as timed out, or "retry" it
        max_takeovers   with on_crash="requeue": how many times a run starts again after a lost worker; then it fails
        key_order       "due": while a run waits for a retry, others with its key may run; "strict": it keeps the key
        key_limit       the number of runs with the same key that may run at once
        keep_forever    exempt the runs from retention
        rate            a limit on starts, such as "10/min" or "100/30s"
        rate_name       share one rate among all jobs that give the same name
        rate_key        apply the rate to each value of this key separately; written like `key`
        unique          return an existing run with the same key (or arguments) instead of submitting another:
                        "queued" if it has not started, "active" if it has not ended
        only_from_code  accept runs only from `submit` in the application's code: the HTTP API, the dashboard, the
                        command line and `again` refuse them
        start_at        with `only_from_code`: the address of the page that starts a run, shown in the refusal
        isolation       "thread" (default), "async" (default for async functions), or "process", which can be killed
        """
        if bare is not None:
            raise InvalidPolicy("write @hf.job() with parentheses")
        policy = Policy(
            **checked_policy(
                {
                    "timeout": as_duration(timeout),
                    "max_attempts": max_attempts,
                    "retry": retry or Retry(),
                    "on_crash": on_crash or ("fail" if self.settings.single_process else "requeue"),
                    "on_shutdown": on_shutdown,
                    "on_timeout": on_timeout,
                    "max_takeovers": max_takeovers,
                    "key_order": key_order,
                    "key_limit": key_limit,
                    "keep_forever": keep_forever,
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
        """Turn a function into a build, which runs once for each scope and fingerprint.

        The function needs a parameter `fingerprint`. Runs wait for a build with `depends_on=[build.request(…)]`.

        name       the build's name in the database; default: the function's dotted path
        scope      identifies the build, with the fingerprint; written like `key` of a job; default: all other arguments
        queue      the queue of its runs
        priority   runs with a higher number start first
        timeout    the time limit of one attempt, in seconds or as a timedelta; None means no limit
        isolation  "thread", "async" or "process", as for a job
        **policy   any other field of Policy, except key_limit and key_order. By default a build whose worker is lost
                   is started once more, and fails if its worker is lost again
        """
        from holdfast.builds.decorator import build_decorator, build_policy

        if bare is not None:
            raise InvalidPolicy("write @hf.build() with parentheses")
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
        """Limit a queue. A limit that is None is left as it is.

        max_queued   how many unfinished runs it accepts over all processes; then submissions raise QueueFull
        concurrency  how many of its runs may run at once, over all processes
        per_worker   how many of its runs each worker of this Holdfast may run at once
        """
        from holdfast.values.queues import Limits

        if per_worker is not None and not is_number(per_worker, least=1):
            raise InvalidPolicy("per_worker must be a whole number of at least 1, or None for no limit")
        limits = {"max_queued": max_queued, "concurrency": concurrency}
        self._limits.add(name, Limits(**{limit: value for limit, value in limits.items() if value is not None}))
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
        """Declare a pipeline. Add its stages with `@pipeline.stage()`, then call `pipeline.submit(…)`.

        queue, priority           for the pipeline's run, and for stages that set none themselves
        only_from_code, start_at  as for a job; reruns are refused as well
        """
        from holdfast.pipelines.pipeline import Pipeline

        policy = Policy(only_from_code=only_from_code, start_at=start_at)
        pipeline = Pipeline(self._submitter, name, queue=queue, priority=priority, policy=policy)
        self.jobs.add(pipeline)
        return pipeline

    def on_failure(self, hook: FailureHook) -> FailureHook:
        """Decorator: call the function with a Snapshot of each run that fails or times out in this process."""
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
        """Create a worker in this process. Use `with hf.worker(): …`, or call `.start()` and `.stop()`.

        queues       the queues to serve, in order of preference; default: those in the settings, and those of builds
        concurrency  how many runs it executes at once; default: the setting
        exclusive    a name that only one live worker may have; at its start, the worker recovers the runs that an
                     earlier worker with this name left behind
        unknown      with `exclusive`: "fail" also recovers the runs of workers that are no longer live, whatever their
                     names; "leave" leaves them to the orchestrator
        drain        stop when no work is left
        role         "both"; "worker" executes runs without orchestrating; "orchestrator" only orchestrates
        schedules    whether it claims slots of schedules; default: the setting
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
        """Run a worker while a FastAPI application runs: `FastAPI(lifespan=hf.lifespan)`."""
        worker = self.worker()
        # A separate thread: while the worker stops, its async jobs may occupy all threads of the default pool.
        threads = Threads("holdfast-lifespan", limit=1)
        await threads.run(worker.start)
        try:
            yield
        finally:
            await threads.run(worker.stop)

    def router(
        self,
        *,
        admin_token: str | None = None,
        access: Callable[[Request], Who | None] | None = None,
        sign_in: str | None = None,
    ) -> APIRouter:
        """Return the HTTP API and the dashboard as a router: `app.include_router(hf.router(), prefix="/hf")`.

        admin_token  a token that gives the role admin; default: the setting
        access       a function that returns who sent a request (a `holdfast.web.Who`), or None; it replaces tokens
        sign_in      with `access`: the address of the page where people sign in
        """
        try:
            from holdfast.web.site import Site
        except ImportError as error:
            raise InvalidSetting(
                f"the HTTP API and the dashboard need more packages ({error}): run pip install 'holdfast[web]'"
            ) from error
        return Site(self, admin_token=admin_token, access=access, sign_in=sign_in).router()

    # Submitting, cancelling and deleting

    def submit(self, job: Job[..., Any] | str, /, **kwargs: Any) -> Run[Any]:
        """Submit a run of a job, which is given as a Job or by its name. The run is durable when this returns."""
        return self.jobs[job_name(job)].submit(**kwargs)

    def get(self, run: RunLike) -> Run[Any]:
        """Return a handle for a run, or raise RunNotFound."""
        snapshot = self.snapshot(run)
        job = self.jobs.get(snapshot.job)
        decode = json_text.load if job is None else job.arguments.decode_result
        return Run(self, snapshot.id, decode=decode, snapshot=snapshot)

    def cancel(self, run: RunLike, *, reason: str = "cancelled", by: str | None = None) -> str:
        """Cancel a run and return its state. A queued run ends at once; a running one is asked to stop.

        `by` names the person or program, for the audit log.
        """
        from holdfast.runs.cancel import cancel_by_hand

        return self.do(lambda tx: cancel_by_hand(tx, id_of(run), reason=reason, by=by))

    def again(self, run: RunLike, *, by: str | None = None) -> Run[Any]:
        """Submit a new run with the job, arguments and policy of this one. Its `again_of` is the id of this one."""
        from holdfast.operate.run_again import run_again

        return self.get(self.do(lambda tx: run_again(tx, id_of(run), by=by, allowed=self.jobs.require_open)))

    def delete(self, run: RunLike, *, by: str | None = None, dry_run: bool = False) -> Pruned:
        """Delete a finished run with its stages, segments, children, artifacts and events, and return how many.

        Raises RunInUse, and deletes nothing, if one of these runs has not ended or is kept forever, or if a rerun, a
        dependency, a build or a slot still refers to it. With `dry_run` it deletes nothing and returns what it would
        delete.
        """
        from holdfast.orchestrator import prune

        return prune.delete(self.store, self._artifact_store, id_of(run), by=by, dry_run=dry_run)

    # Reading

    def snapshot(self, run: RunLike) -> Snapshot:
        """Return the current state of a run, or raise RunNotFound."""
        from holdfast.runs.snapshot import get_snapshot

        return self.read(lambda tx: get_snapshot(tx, id_of(run)))

    def timeline(self, run: RunLike) -> list[Event]:
        """Return all events of a run, in order."""
        from holdfast.operate.timeline import timeline

        return self.read(lambda tx: timeline(tx, id_of(run)))

    def why(self, run: RunLike) -> Why:
        """Explain why a run is in its state: what it waits for, where it runs, or how it ended."""
        from holdfast.operate.explain import explain

        return self.read(lambda tx: explain(tx, id_of(run)))

    def run_details(self, run: RunLike) -> RunDetails:
        """Return the data of a run's page: its explanation, newest events, steps and related runs."""
        from holdfast.operate import run_details

        return self.read(lambda tx: run_details.of(tx, id_of(run)))

    def search(
        self,
        filter: RunFilter | None = None,
        *,
        limit: int = 50,
        after: str | None = None,
        order: Order = "newest",
        before: RunLike | None = None,
    ) -> SearchPage[Snapshot]:
        """Return a page of the runs that match a filter, newest first.

        after   the `next` of the previous page
        order   for a filter with a final state: "newest" sorts by the end of a run, "submitted" by its submission
        before  leaves out this run and all runs submitted after it

        A page examines at most 10,000 runs. It may therefore hold few runs, or none, and still have a `next`.
        """
        from holdfast.operate.search import search_runs

        check_limit(limit)
        bound = "~" if before is None else id_of(before)
        return self.read(
            lambda tx: search_runs(tx, _checked(filter), limit=limit, after=after, bound=bound, order=order)
        )

    def count(self, filter: RunFilter | None = None) -> Count:
        """Count the runs that match a filter. It examines at most 10,000 runs; `more` is true if there are more."""
        from holdfast.operate.search import count_runs

        return self.read(lambda tx: count_runs(tx, _checked(filter)))

    def counts(self, filter: RunFilter | None = None) -> Mapping[str, Count]:
        """Count the runs that match a filter, for each state. The `state` of the filter itself is ignored."""
        from holdfast.operate.search import count_states

        return self.read(lambda tx: count_states(tx, _checked(filter).without_state))

    def timeline_page(self, run: RunLike, *, after: str | None = None, limit: int = 1000) -> TimelinePage:
        """Return the events of a run after a cursor. Each event comes with the cursor to continue from."""
        from holdfast.operate.timeline import timeline_page

        check_limit(limit)
        return self.read(lambda tx: timeline_page(tx, id_of(run), after=after, limit=limit))

    def change_marker(self) -> str:
        """Return a short text that changes when a run is submitted, starts or ends, or an event is recorded.

        It is cheap enough to poll: read more only when it has changed.
        """
        from holdfast.operate.changes import change_markers

        return self.read(change_markers).runs

    def events(self, *, after: str | None = None, kinds: Collection[str] | None = None, limit: int = 1000) -> Events:
        """Return the recorded events of all runs after a cursor, and the next cursor. No event is skipped."""
        from holdfast.runs import events

        check_limit(limit)
        return self.read(lambda tx: events.everywhere(tx, after=after, kinds=kinds, limit=limit))

    def events_cursor(self) -> str:
        """Return a cursor after which `events` returns only events recorded from now on."""
        from holdfast.runs import events

        return self.read(events.end)

    def logs(
        self, run: RunLike, *, level: str = "DEBUG", text: str | None = None, after: str | None = None, limit: int = 500
    ) -> Logs:
        """Return a page of a run's log: records of at least this level that contain this text.

        `after` is the `next` of the previous page. A page examines at most 10,000 events.
        """
        from holdfast.operate import logs

        check_limit(limit)
        return self.read(lambda tx: logs.of(tx, id_of(run), level=level, text=text, after=after, limit=limit))

    def steps(self, run: RunLike) -> Sequence[Step]:
        """Return the stored steps of a run, in order. Their `result` is JSON text."""
        from holdfast.runs import steps
        from holdfast.runs.snapshot import get_snapshot

        return self.read(lambda tx: steps.of(tx, get_snapshot(tx, id_of(run)).id))

    def find_ids(self, prefix: str, *, limit: int = 3) -> Sequence[str]:
        """Return the run ids that begin with this prefix, oldest first."""
        from holdfast.runs.snapshot import find_ids

        check_limit(limit)
        return self.read(lambda tx: find_ids(tx, prefix, limit=limit))

    def audit_log(self, *, limit: int = 50, before: str | None = None) -> Sequence[AuditEntry]:
        """Return the actions of operators, newest first. `before` is the cursor of the last entry of a page."""
        from holdfast.runs import audit

        check_limit(limit)
        return self.read(lambda tx: audit.listed(tx, limit=limit, before=before))

    # The database

    def verify(self, *, artifacts: bool = False) -> list[Finding]:
        """Check that the live database is consistent, above all that every run is in exactly one place.

        Return the problems found. With `artifacts` it also reads every artifact and compares it with its checksum.
        """
        from holdfast.operate import doctor
        from holdfast.operate.verify import verify

        findings = verify(self.store, lease=self.settings.lease)
        return findings + (doctor.artifacts(self.store, self._artifact_store) if artifacts else [])

    def prune(self, *, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Delete finished runs past their retention period, as workers do regularly, and return how many."""
        from holdfast.orchestrator import prune
        from holdfast.runs import retention
        from holdfast.runs.retention import Pruned

        limits = retention.limits(self.settings, now or self.clock.now())
        steps = prune.steps(self.store, self._artifact_store, limits, cursors={}, dry_run=dry_run)
        return sum(steps, start=Pruned())

    def backup(self, path: str | Path, *, progress: Progress = lambda copied, total: None) -> Backup:
        """Copy a SQLite database to a new file while it is in use, and check the copy.

        `progress` is called with the number of pages copied so far and the number of pages in all.
        """
        return self._store.backup(Path(path), progress=progress)

    def migrate(self) -> int:
        """Create or update the tables, and return how many migrations were applied."""
        from holdfast.store import connect, migrate

        return migrate.migrate(self._store, prefix=connect.prefix(self.settings, self._store.dialect))

    def migration_sql(self, *, from_version: int | None = None) -> list[str]:
        """Return the SQL statements that `migrate` would run, in order.

        With `from_version` they start from that version of the schema, and no database is needed.
        """
        from holdfast.store import connect, migrate

        return migrate.script(
            self._store, prefix=connect.prefix(self.settings, self._store.dialect), from_version=from_version
        )

    def doctor(self) -> list[Check]:
        """Check the versions, the database, the clock, the schema and the workers, with advice for each problem."""
        from holdfast.operate import doctor

        return doctor.check(self._store, self.settings)

    def include_object(self, object: Any, name: str | None, type_: str, reflected: bool, compare_to: Any) -> bool:
        """Exclude Holdfast's tables from Alembic: `context.configure(include_object=hf.include_object)`."""
        table = name if type_ == "table" else getattr(getattr(object, "table", None), "name", None)
        return not (table or "").startswith(self.settings.table_prefix)


def _checked(filter: RunFilter | None) -> RunFilter:
    from holdfast.values.filters import RunFilter

    if filter is None:
        return RunFilter()
    if not isinstance(filter, RunFilter):
        raise InvalidArguments(f"the filter must be a RunFilter, not {filter!r}")
    return filter
