"""Engine: all that ade asks of Holdfast. Two queues, one build, one job; the work itself is in modules of its own.

    POST …/runs ──one transaction──▶ run (queue ade) ──after──▶ build (queue ade.builds), got or created once

Each process runs ADE_MAX_CONCURRENCY runs at once, and ADE_MAX_BUILDS builds beside them. Both are processes of their
own: when one has to stop, it and all that it has started are gone before anyone is told that it has ended.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from apps.ade import configurations, documents, installing, places, settings, telling
from apps.ade.environments import BuildFailed, Environments
from apps.ade.process import Limits
from apps.ade.tables import Base, Document, Version
from apps.ade.telling import Event
from apps.ade.work import WORKBOOK, RunFailed, Work
from apps.database import Database
from holdfast import Build, BuildNotFound, Context, GiveUp, Holdfast

RUNS, BUILDS = "ade", "ade.builds"

given = settings.load()
hf = Holdfast(
    queues=(BUILDS, RUNS),
    # One place more, so that what operators ask for in bulk finds one.
    concurrency=given.max_concurrency + given.max_builds + 1,
)
hf.queue(RUNS, per_worker=given.max_concurrency, max_queued=given.queue_size)
hf.queue(BUILDS, per_worker=given.max_builds)


def _prepare() -> None:
    """Before the first session: the engine's tables, and the bound as it is set now."""
    hf.start()
    if given.queue_size is None and any(each.name == RUNS and each.max_queued for each in hf.queues.list()):
        hf.queues.limit(RUNS, max_queued=None)


def _limits(seconds: float) -> Limits:
    return Limits(seconds=seconds, memory=given.max_memory_bytes, file_size=given.max_output_bytes)


database = Database(hf.settings.url, Base.metadata, prepare=_prepare)
environments = Environments(
    given.environments,
    limits=_limits(given.build_timeout.total_seconds()),
    grace=given.stop_grace,
)


@hf.build(
    name="ade.environment",
    queue=BUILDS,
    scope="configuration_id",
    isolation="process",
    timeout=given.build_timeout,
    audit=True,
)
def environment(ctx: Context, configuration_id: str, version: int, fingerprint: str) -> dict[str, Any]:
    """Make the environment of a fingerprint on this host; others make it again when they need it."""
    try:
        environments.make(ctx.run.id, _files(configuration_id, version), tell=ctx.log.info)
    except BuildFailed as error:
        raise GiveUp(str(error), failure_type="ENVIRONMENT_FAILED") from error
    collect()
    return {"environment": ctx.run.id, "engine": installing.engine_version()}


@hf.job(
    name="ade.run",
    queue=RUNS,
    isolation="process",
    # The engine's own time is kept in `work`; this one is for all of it, should an environment have to be made again.
    timeout=given.run_timeout_seconds + given.build_timeout + timedelta(seconds=60),
    on_crash="fail",
    audit=True,
    only_from_code=True,  # a run needs its row, its build and its place in the queue: one transaction makes all of them
    start_at="/runs",
)
def normalise(ctx: Context, document_id: str, configuration_id: str, version: int) -> dict[str, float | None]:
    """Run the engine for one document, in the environment of the build that this run waited for."""
    [making] = ctx.run.needed
    files = _files(configuration_id, version)
    places.clear(given.work)  # of runs that were killed with their API
    try:
        with (
            places.workplace(given.work, ctx.run.id) as place,
            environments.used(making, files, tell=ctx.log.info) as environment,
        ):
            work = _work(place, environment, document_id, files)
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
    except BuildFailed as error:
        raise GiveUp(f"build failed on this host: {error}", failure_type="ENVIRONMENT_FAILED") from None
    except RunFailed as error:
        raise GiveUp(str(error), failure_type=_word(error.code)) from None
    return telling.counts_of(done)


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


def cancel_build(configuration_id: str, version: int, fingerprint: str, *, by: str) -> None:
    """Stop a build; one that was only asked for is made known first, so that there is something to stop."""
    found = making(configuration_id, version, fingerprint)
    if found is None:
        environment.submit(configuration_id=configuration_id, version=version, fingerprint=fingerprint)
        found = making(configuration_id, version, fingerprint)
    if found is not None and found.state in ("queued", "building"):
        hf.cancel(found.run_id, reason=f"cancelled by {by}", by=by)


def collect() -> list[str]:
    """Remove what killed runs have left on this host, and environments that no run needs or has used for long."""
    places.clear(given.work)
    places.clear(given.environments.parent / "checks")
    return environments.collect(needed=_needed, unused_for=given.keep_environments)


def _needed() -> set[str]:
    """The environments of runs that have not ended."""
    waiting = [run for state in ("queued", "running") for run in hf.list_runs(job=normalise, state=state, limit=10_000)]
    return {making for run in waiting for making in run.needed}


def _heard(ctx: Context, event: Event) -> None:
    say = ctx.log.warning if telling.is_warning(event) else ctx.log.info
    say("%s", telling.in_words(event))
    if (share := telling.share_of(event)) is not None:
        ctx.progress(share[0], 1.0, share[1])


def _work(place: Path, environment: Path, document_id: str, files: configurations.Files) -> Work:
    """An execution with all that it needs in its folder."""
    with database.read() as session:
        document = session.get_one(Document, document_id)
        work = Work(
            place=place,
            environment=environment,
            name=document.name,
            limits=_limits(given.run_timeout_seconds.total_seconds()),
            grace=given.stop_grace,
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
