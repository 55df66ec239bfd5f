"""Jobs: all that ade asks of Holdfast. Two queues, one build, one job; the work itself is in modules of its own.

    POST …/runs ──one transaction──▶ run (queue ade) ──after──▶ build (queue ade.builds), got or created once
                                      ▲                          │
                                      └── restored if missing ◀──┴──▶ environment.tar.gz, an artifact of the build

Each process runs ADE_MAX_CONCURRENCY runs at once, and ADE_MAX_BUILDS builds beside them. Both are processes of their
own: when one has to stop, it and all that it has started are gone before anyone is told that it has ended.
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
"""The reason of a stale build begins like this if its environment is lost; the view `ade_builds` reads it, too."""
LOOKED_AT, LONGEST_REASON = 100, 1_000

log = logging.getLogger("ade")

given = Settings.load()
hf = Holdfast(queues=(BUILDS, RUNS), concurrency=given.max_concurrency + given.max_builds)
# The bound on queued runs is the server's to set: see `set_queue_size`.
hf.queue(RUNS, per_worker=given.max_concurrency)
hf.queue(BUILDS, per_worker=given.max_builds)


def set_queue_size() -> None:
    """Make ADE_QUEUE_SIZE of this process the bound of all. Only a server does, when it starts."""
    if (before := queue_size()) != given.queue_size:
        hf.queues.limit(RUNS, max_queued=given.queue_size, by="ade")
        log.warning(
            "the bound on queued and running runs was %s and is now %s", _bound(before), _bound(given.queue_size)
        )


def queue_size() -> int | None:
    """The bound that holds now, whichever server has set it; None: no bound."""
    return hf.queues.get(RUNS).max_queued


def _prepare() -> None:
    """Before the first session: the engine's tables. A bound that differs from ours is logged, and left as it is."""
    hf.start()
    if (bound := queue_size()) != given.queue_size:
        ours = "is not set" if given.queue_size is None else f"is {given.queue_size:,}"
        log.warning("ADE_QUEUE_SIZE %s here, and the server has set %s: the server's value counts", ours, _bound(bound))


def _bound(size: int | None) -> str:
    return "no bound" if size is None else f"{size:,}"


def _limits(seconds: float) -> Limits:
    return Limits(seconds=seconds, memory=given.max_memory_bytes, file_size=given.max_output_bytes)


database = Database(
    hf.settings.url,
    MetaData(),  # `migrate` makes all of them
    prepare=_prepare,
    complete=lambda connection: migrations.migrate(connection, prefix=engine_prefix(hf)),
    sql_server=True,
)
environments = Environments(given.environments, limits=_limits(given.build_timeout.total_seconds()))


@hf.build(
    name="ade.environment",
    queue=BUILDS,
    scope="{configuration_id}",
    isolation="process",
    timeout=given.build_timeout,
    audit=True,
)
def environment(ctx: Context, configuration_id: str, version: int, fingerprint: str) -> dict[str, Any]:
    """Make the environment of a fingerprint, and store it where every host can get it."""
    _check_fingerprint(configuration_id, version, fingerprint)
    name = ctx.run.id
    try:
        environments.make(name, _files(configuration_id, version), tell=ctx.log.info)
        stored = ctx.artifact(ARCHIVE, lambda path: environments.pack(name, path))
    except BuildFailed as error:
        raise GiveUp(str(error), failure_type="ENVIRONMENT_FAILED") from error
    ctx.log.info("the environment is stored: %s bytes, SHA-256 %s", f"{stored.size:,}", stored.sha256)
    collect()
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
    timeout=given.run_timeout_seconds,  # for all that it does while it is `running`
    on_crash="fail",
    on_shutdown="fail",  # there are no retries: a run that a deployment stops is not started a second time
    audit=True,
    only_from_code=True,  # a run needs its row, its build and its place in the queue: one transaction makes all of them
    start_at="/runs",
)
def normalise(ctx: Context, document_id: str, configuration_id: str, version: int) -> dict[str, float | None]:
    """Run the engine for one document, in the environment of the build that this run waited for."""
    over_at = time.monotonic() + given.run_timeout_seconds.total_seconds()
    [making] = ctx.run.needed
    files = _files(configuration_id, version)
    folders.clear(given.work)  # of runs that were killed with their API
    try:
        with (
            folders.temporary_folder(given.work, ctx.run.id) as place,
            environments.used(making, lambda: hf.artifacts.get(making, ARCHIVE), tell=ctx.log.info) as environment,
        ):
            work = _work(place, environment, document_id, files, over_at=over_at)
            try:
                done = work.do(lambda event: _heard(ctx, event))
            finally:
                made = work.outputs()
                for file in made:
                    ctx.artifact(file.name, file)
            if not any(file.name == WORKBOOK for file in made):
                raise RunFailed("the engine says that it has finished, and has left no workbook", code="no_workbook")
            if (preview := work.preview()) is not None:
                ctx.artifact("preview.json", preview)
    except EnvironmentLost as error:
        _lose(making, str(error))
        raise GiveUp(f"the environment was lost: {error}", failure_type="ENVIRONMENT_LOST") from None
    except NotRestored as error:
        raise GiveUp(str(error), failure_type="ENVIRONMENT_NOT_RESTORED") from None
    except RunFailed as error:
        raise GiveUp(str(error), failure_type=_word(error.code)) from None
    return engine_events.counts_of(done)


def submit(
    session: Session, *, document_id: str, configuration_id: str, version: int, fingerprint: str, tags: dict[str, str]
) -> str:
    """Queue a run in the caller's transaction, to start when its build is made; its id. QueueFull if it is too much."""
    wish = environment.of(configuration_id=configuration_id, version=version, fingerprint=fingerprint)
    ordered = normalise.using(connection=session, after=[wish], tags=tags)
    return ordered.submit(document_id=document_id, configuration_id=configuration_id, version=version).id


def making(configuration_id: str, version: int, fingerprint: str) -> Build | None:
    """How far a build is; None while it was only asked for."""
    try:
        return hf.builds.get(
            environment.of(configuration_id=configuration_id, version=version, fingerprint=fingerprint)
        )
    except BuildNotFound:
        return None


def cancel_build(build_id: str, configuration_id: str, version: int, fingerprint: str, *, by: str) -> None:
    """Stop a build. One that was only asked for is made known first, so that there is something to stop."""
    found = making(configuration_id, version, fingerprint)
    if found is None or (found.state not in ("queued", "building") and _asked_for(build_id, found)):
        environment.submit(configuration_id=configuration_id, version=version, fingerprint=fingerprint)
        found = making(configuration_id, version, fingerprint)
    if found is not None and found.state in ("queued", "building"):
        hf.cancel(found.run_id, reason=f"cancelled by {by}", by=by)


def _asked_for(build_id: str, ended: Build) -> bool:
    """Whether a queued run is about to have a build made once more that has ended."""
    queued = hf.search(RunFilter(job=normalise.name, state="queued", tag=("build", build_id)), limit=LOOKED_AT)
    return any(ended.run_id not in run.needed for run in queued.items)


def _lose(making: str, why: str) -> None:
    """No one can have this environment any more: the next run that needs it has it built again."""
    found = hf.builds.get(making)
    if found.run_id == making and found.stale_at is None:
        hf.builds.invalidate(found, because=f"{LOST}{why}"[:LONGEST_REASON])


def _check_fingerprint(configuration_id: str, version: int, fingerprint: str) -> None:
    """Refuse to make an environment that would not be what its fingerprint says."""
    engine, platform = install.engine_version(), install.platform()
    with database.read() as session:
        row = session.get_one(Version, (configuration_id, version))
        ours = configurations.fingerprint(row, engine=engine, platform=platform)
    if ours != fingerprint:
        raise GiveUp(
            f"this host has engine {engine} and is {platform}; the build is for another engine or platform",
            failure_type="WRONG_HOST",
        )


def collect() -> list[str]:
    """Remove what killed runs have left on this host, and environments that no run needs or has used for long."""
    folders.clear(given.work)
    folders.clear(given.environments.parent / "checks")
    return environments.collect(needed=_needed, unused_for=given.keep_environments)


def _needed() -> set[str]:
    """The environments of runs that have not ended."""
    needed: set[str] = set()
    for state in ("queued", "running"):
        after, more = None, True
        while more:
            page = hf.search(RunFilter(job=normalise.name, state=state), limit=10_000, after=after)
            needed.update(making for run in page.items for making in run.needed)
            after, more = page.next, page.next is not None
    return needed


def _heard(ctx: Context, event: Event) -> None:
    say = ctx.log.warning if engine_events.is_warning(event) else ctx.log.info
    say("%s", engine_events.in_words(event))
    if (share := engine_events.share_of(event)) is not None:
        ctx.progress(share[0], 1.0, share[1])


def _work(
    place: Path, environment: Path, document_id: str, files: configurations.Files, *, over_at: float
) -> Execution:
    """An execution with all that it needs in its folder."""
    with database.read() as session:
        document = session.get_one(Document, document_id)
        work = Execution(
            place=place,
            environment=environment,
            name=document.name,
            limits=_limits(given.run_timeout_seconds.total_seconds()),
            over_at=over_at,
        )
    work.configuration.mkdir(parents=True)
    documents.write_to(database, document, work.input)
    configurations.write_to(files, work.configuration)
    return work


def _files(configuration_id: str, version: int) -> dict[str, str]:
    with database.read() as session:
        return configurations.files_of(session.get_one(Version, (configuration_id, version)))


def _word(code: str) -> str:
    """The engine's word for a failure, as Holdfast spells such words."""
    return f"ENGINE_{''.join(letter if letter.isalnum() else '_' for letter in code.upper() if letter.isascii())[:40]}"
