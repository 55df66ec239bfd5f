"""Jobs: how ade uses Holdfast: two queues, one build and one job. Other modules do the work.

    POST …/runs ──one transaction──▶ run (queue ade) ──depends on──▶ build (queue ade.builds), found or created
                                      ▲                               │
                                      └── restored if missing ◀───────┴──▶ environment.tar.gz, an artifact of the build

Each process executes up to ADE_MAX_CONCURRENCY runs at once, and up to ADE_MAX_BUILDS builds beside them. Each run or
build is a process of its own. When it is cancelled or times out, it is killed with its children before its outcome is
written.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

from sqlalchemy import MetaData
from sqlalchemy.orm import Session

from apps.ade import configurations, documents, engine_events, folders, install, migrations
from apps.ade.engine_events import Event
from apps.ade.environments import BuildFailed, EnvironmentLost, Environments, NotRestored
from apps.ade.execution import WORKBOOK, Execution, RunFailed
from apps.ade.process import Limits
from apps.ade.settings import Settings
from apps.ade.tables import Document, Version
from apps.shared.database import Database, engine_prefix
from holdfast import Build, BuildNotFound, Context, GiveUp, Holdfast, RunFilter

RUNS, BUILDS = "ade", "ade.builds"
ARCHIVE = "environment.tar.gz"
LOST = "lost: "
"""Prefix of the reason of a stale build whose environment is lost; the view `ade_builds` looks for it, too."""
MAX_SEARCHED_RUNS, MAX_REASON_LENGTH = 100, 1_000

log = logging.getLogger("ade")

settings = Settings.load()
hf = Holdfast(queues=(BUILDS, RUNS), concurrency=settings.max_concurrency + settings.max_builds)
# Only a server sets the queue's size limit, in `set_queue_size`.
hf.queue(RUNS, per_worker=settings.max_concurrency)
hf.queue(BUILDS, per_worker=settings.max_builds)


def set_queue_size() -> None:
    """Apply this process's ADE_QUEUE_SIZE to all processes. Only a server calls it, at start-up."""
    if (before := queue_size()) != settings.queue_size:
        hf.queues.limit(RUNS, max_queued=settings.queue_size, by="ade")
        log.warning(
            "changed the limit on queued and running runs from %s to %s",
            _limit_text(before),
            _limit_text(settings.queue_size),
        )


def queue_size() -> int | None:
    """Return the limit that applies now, whichever server set it; None means no limit."""
    return hf.queues.get(RUNS).max_queued


def _prepare() -> None:
    """Create Holdfast's tables before the first session; warn if ADE_QUEUE_SIZE differs from the current limit."""
    hf.start()
    if (limit := queue_size()) != settings.queue_size:
        own = "is not set" if settings.queue_size is None else f"is {settings.queue_size:,}"
        log.warning(
            "ADE_QUEUE_SIZE %s here, but the server has set %s; the server's value applies", own, _limit_text(limit)
        )


def _limit_text(size: int | None) -> str:
    return "no limit" if size is None else f"{size:,}"


def _limits(seconds: float) -> Limits:
    return Limits(seconds=seconds, memory=settings.max_memory_bytes, file_size=settings.max_output_bytes)


database = Database(
    hf.settings.url,
    MetaData(),  # `migrate` creates all tables
    prepare=_prepare,
    complete=lambda connection: migrations.migrate(connection, prefix=engine_prefix(hf)),
    sql_server=True,
)
environments = Environments(settings.environments, limits=_limits(settings.build_timeout.total_seconds()))


@hf.build(
    name="ade.environment",
    queue=BUILDS,
    scope="{configuration_id}",
    isolation="process",
    timeout=settings.build_timeout,
    keep_forever=True,
)
def environment(ctx: Context, configuration_id: str, version: int, fingerprint: str) -> dict[str, Any]:
    """Create the environment for a fingerprint, and store it in the artifact store for all hosts."""
    _check_fingerprint(configuration_id, version, fingerprint)
    name = ctx.run.id
    try:
        environments.create(name, _files(configuration_id, version), log=ctx.log.info)
        stored = ctx.artifact(ARCHIVE, lambda path: environments.pack(name, path))
    except BuildFailed as error:
        raise GiveUp(str(error), failure_type="ENVIRONMENT_FAILED") from error
    ctx.log.info("stored the environment: %s bytes, SHA-256 %s", f"{stored.size:,}", stored.sha256)
    remove_unused_environments()
    return {
        "environment": name,
        "engine": install.engine_version(),
        "platform": install.platform(),
        "size": stored.size,
        "sha256": stored.sha256,
    }


@hf.job(
    name="ade.run",
    queue=RUNS,
    isolation="process",
    timeout=settings.run_timeout_seconds,  # for the whole time that the run is `running`
    on_crash="fail",
    on_shutdown="fail",  # runs are never retried, so a run that a deployment interrupts does not start again
    keep_forever=True,
    only_from_code=True,  # `runs.submit` must also write ade's own row, in the same transaction
    start_at="/runs",
)
def normalise(ctx: Context, document_id: str, configuration_id: str, version: int) -> dict[str, float | None]:
    """Run the engine for one document, in the environment of the build that this run depends on."""
    deadline = time.monotonic() + settings.run_timeout_seconds.total_seconds()
    [build_run_id] = ctx.run.depends_on
    files = _files(configuration_id, version)
    folders.clear(settings.work)  # folders of runs that were killed together with their server
    try:
        with (
            folders.temporary_folder(settings.work, ctx.run.id) as folder,
            environments.use(
                build_run_id, lambda: hf.artifacts.get(build_run_id, ARCHIVE), log=ctx.log.info
            ) as environment,
        ):
            execution = _execution(folder, environment, document_id, files, deadline=deadline)
            try:
                last_event = execution.run(lambda event: _log_event(ctx, event))
            finally:
                outputs = execution.outputs()
                for file in outputs:
                    ctx.artifact(file.name, file)
            if not any(file.name == WORKBOOK for file in outputs):
                raise RunFailed("the engine reported success but wrote no workbook", code="no_workbook")
            if (preview := execution.preview()) is not None:
                ctx.artifact("preview.json", preview)
    except EnvironmentLost as error:
        _mark_lost(build_run_id, str(error))
        raise GiveUp(f"the environment was lost: {error}", failure_type="ENVIRONMENT_LOST") from None
    except NotRestored as error:
        raise GiveUp(str(error), failure_type="ENVIRONMENT_NOT_RESTORED") from None
    except RunFailed as error:
        raise GiveUp(str(error), failure_type=_failure_type(error.code)) from None
    return engine_events.counts_of(last_event)


def submit(
    session: Session, *, document_id: str, configuration_id: str, version: int, fingerprint: str, tags: dict[str, str]
) -> str:
    """Submit a run in the caller's transaction and return its id. The run starts when its build is ready.

    Raises QueueFull if too many runs are unfinished.
    """
    request = environment.request(configuration_id=configuration_id, version=version, fingerprint=fingerprint)
    submission = normalise.using(connection=session, depends_on=[request], tags=tags)
    return submission.submit(document_id=document_id, configuration_id=configuration_id, version=version).id


def find_build(configuration_id: str, version: int, fingerprint: str) -> Build | None:
    """Return Holdfast's record of a build; None while it is only requested."""
    try:
        return hf.builds.get(
            environment.request(configuration_id=configuration_id, version=version, fingerprint=fingerprint)
        )
    except BuildNotFound:
        return None


def cancel_build(build_id: str, configuration_id: str, version: int, fingerprint: str, *, by: str) -> None:
    """Cancel a build. A build that is only requested is submitted first, so that there is a run to cancel."""
    build = find_build(configuration_id, version, fingerprint)
    if build is None or (build.state not in ("queued", "building") and _is_requested_again(build_id, build)):
        environment.submit(configuration_id=configuration_id, version=version, fingerprint=fingerprint)
        build = find_build(configuration_id, version, fingerprint)
    if build is not None and build.state in ("queued", "building"):
        hf.cancel(build.run_id, reason=f"cancelled by {by}", by=by)


def _is_requested_again(build_id: str, ended: Build) -> bool:
    """Return whether a queued run has requested to repeat this build, which has ended."""
    queued = hf.search(RunFilter(job=normalise.name, state="queued", tag=("build", build_id)), limit=MAX_SEARCHED_RUNS)
    return any(ended.run_id not in run.depends_on for run in queued.items)


def _mark_lost(build_run_id: str, reason: str) -> None:
    """Mark the build of a lost environment as stale, so that the next run that needs it requests a new build."""
    build = hf.builds.get(build_run_id)
    if build.run_id == build_run_id and build.stale_at is None:
        hf.builds.invalidate(build, reason=f"{LOST}{reason}"[:MAX_REASON_LENGTH])


def _check_fingerprint(configuration_id: str, version: int, fingerprint: str) -> None:
    """Raise GiveUp if an environment created on this host would not match the fingerprint."""
    engine, platform = install.engine_version(), install.platform()
    with database.read() as session:
        row = session.get_one(Version, (configuration_id, version))
        own_fingerprint = configurations.fingerprint(row, engine=engine, platform=platform)
    if own_fingerprint != fingerprint:
        raise GiveUp(
            f"this host has engine {engine} on {platform}, but the build is for another engine or platform",
            failure_type="WRONG_HOST",
        )


def remove_unused_environments() -> list[str]:
    """Remove the folders that killed runs left on this host, and environments that no run has used for a long time."""
    folders.clear(settings.work)
    folders.clear(settings.environments.parent / "checks")
    return environments.remove_unused(needed=_needed, unused_for=settings.keep_environments)


def _needed() -> set[str]:
    """Return the environments that unfinished runs use or wait for."""
    needed: set[str] = set()
    for state in ("queued", "running"):
        after, more = None, True
        while more:
            page = hf.search(RunFilter(job=normalise.name, state=state), limit=10_000, after=after)
            needed.update(build_run_id for run in page.items for build_run_id in run.depends_on)
            after, more = page.next, page.next is not None
    return needed


def _log_event(ctx: Context, event: Event) -> None:
    write = ctx.log.warning if engine_events.is_warning(event) else ctx.log.info
    write("%s", engine_events.describe(event))
    if (share := engine_events.share_of(event)) is not None:
        ctx.progress(share[0], 1.0, share[1])


def _execution(
    folder: Path, environment: Path, document_id: str, files: configurations.Files, *, deadline: float
) -> Execution:
    """Write the document and the configuration into the folder, and return the execution that uses them."""
    with database.read() as session:
        document = session.get_one(Document, document_id)
        execution = Execution(
            folder=folder,
            environment=environment,
            name=document.name,
            limits=_limits(settings.run_timeout_seconds.total_seconds()),
            deadline=deadline,
        )
    execution.configuration.mkdir(parents=True)
    documents.write_to(database, document, execution.input)
    configurations.write_to(files, execution.configuration)
    return execution


def _files(configuration_id: str, version: int) -> dict[str, str]:
    with database.read() as session:
        return configurations.files_of(session.get_one(Version, (configuration_id, version)))


def _failure_type(code: str) -> str:
    """Turn the engine's error code into a failure type of Holdfast: `no_table_found` → `ENGINE_NO_TABLE_FOUND`."""
    return f"ENGINE_{''.join(letter if letter.isalnum() else '_' for letter in code.upper() if letter.isascii())[:40]}"
