"""holdfast builds: list, show, invalidate and rebuild builds."""

from __future__ import annotations

from datetime import datetime

import click
from rich.text import Text

from holdfast.app import Holdfast
from holdfast.cli import (
    completion,
    exit_codes,
    json_output,
    parameters,
    run_tables,
    screen,
    targets,
)
from holdfast.support import json_text
from holdfast.support.text import duration, plain
from holdfast.values.builds import STATES, Build
from holdfast.values.pages import Page
from holdfast.values.runs import last_line

COLUMNS = ("ID", "STATE", "JOB", "SCOPE", "FINGERPRINT", "CREATED", "TOOK", "WAITING", "NOTE")
SPARE = ("TOOK", "CREATED", "JOB", "WAITING", "FINGERPRINT")
STYLES = {"queued": "yellow", "building": "cyan", "ready": "green", "failed": "red", "cancelled": "magenta"}


@click.group()
def builds() -> None:
    """List, inspect, invalidate and rebuild builds.

    \b
    holdfast builds list app:hf --state failed
    holdfast builds invalidate sqlite:///work.db ID --reason "a package was withdrawn"
    """


@builds.command("list")
@parameters.target_argument()
@click.option("--state", type=click.Choice(STATES), help="Only builds in this state.")
@click.option("--job", shell_complete=completion.jobs, help="Only builds of this job.")
@click.option("--scope", help="Only builds of this scope.")
@parameters.limit_option
@parameters.before_option(completion.builds)
@parameters.json_option
def list_(
    target: str, state: str | None, job: str | None, scope: str | None, limit: int, before: str | None, as_json: bool
) -> int:
    """List builds, the newest first. ID is the run that makes the build; WAITING counts the runs that wait for it.

    Times are UTC.

    \b
    holdfast builds list app:hf
    holdfast builds list app:hf --state failed --json | jq '.items[].error'
    """
    with targets.resolve(target) as hf:
        job = None if job is None else targets.full_job_name(job, targets.job_names(hf))
        found = hf.builds.list(job=job, scope=scope, state=state, limit=limit, before=before)
        screen.listing(
            Page.of(found, limit=limit, cursor=lambda build: build.run_id),
            as_json=as_json,
            shape=json_output.build,
            table=lambda: screen.table(COLUMNS, [_row(build, hf.clock.now()) for build in found], spare=SPARE),
            empty="no matching builds" if state or job or scope or before else "no builds yet",
        )
        return exit_codes.OK


@builds.command("show")
@parameters.target_argument()
@parameters.run_argument(completion.builds)
@parameters.json_option
def show_(target: str, run_id: str, as_json: bool) -> int:
    """Show a build and the runs that made it, the newest first. ID is the id of any of these runs.

    \b
    holdfast builds show app:hf 01m2…
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        build = hf.builds.get(run_id)
        history = hf.builds.history(build)
        if as_json:
            screen.document(json_output.build(build) | {"runs": [json_output.run(run) for run in history]})
            return exit_codes.OK
        _facts(hf, build)
        screen.show(Text("\nRuns", style="bold"))
        screen.show(run_tables.list_of(history, now=hf.clock.now()))
        return exit_codes.OK


@builds.command(short_help="Mark a build as stale, so that the next request rebuilds it.")
@parameters.target_argument()
@parameters.run_argument(completion.builds)
@click.option("--reason", help="The reason, stored with the build until it is rebuilt.")
@parameters.json_option
def invalidate(target: str, run_id: str, reason: str | None, as_json: bool) -> int:
    """Mark a build as stale: the next run that requests it starts a new build.

    Runs that already wait for the build keep waiting. A build that is already stale keeps its reason. To build it
    now, use 'holdfast builds rebuild'.

    \b
    holdfast builds invalidate app:hf 01m2… --reason "a package was withdrawn"
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        before = hf.builds.get(run_id)
        build = hf.builds.invalidate(before, reason=reason, **targets.audit_fields(hf))
        if as_json:
            screen.document(json_output.build(build))
        elif before.state == "stale":
            reason_given = f": {plain(build.reason)}" if build.reason else ""
            screen.show(f"{plain(_name(build))} was already stale{reason_given}")
        else:
            screen.show(f"{plain(_name(build))} is stale; the next run that requests it rebuilds it")
        return exit_codes.OK


@builds.command(short_help="Rebuild now.")
@parameters.target_argument()
@parameters.run_argument(completion.builds)
@parameters.json_option
def rebuild(target: str, run_id: str, as_json: bool) -> int:
    """Rebuild now, and print the id of the new run. The earlier run stays in the build's history.

    \b
    holdfast builds rebuild app:hf 01m2…
    """
    with targets.resolve(target) as hf:
        run = hf.builds.rebuild(targets.full_run_id(hf, run_id), **targets.audit_fields(hf))
        run_tables.submitted(run, as_json=as_json)
        return exit_codes.OK


def _row(build: Build, now: datetime) -> list[str | Text]:
    return [
        plain(build.run_id),
        Text(build.state, style=STYLES.get(build.state, "")),
        screen.short(build.job, 40),
        screen.short(build.scope, 40),
        screen.short(build.fingerprint, 13),
        screen.instant(build.created_at),
        _took(build, now),
        str(build.waiting) if build.waiting else "",
        screen.short(_note(build), 200),
    ]


def _facts(hf: Holdfast, build: Build) -> None:
    facts = {
        "build": _name(build),
        "fingerprint": build.fingerprint,
        "state": build.state + (f": {_note(build)}" if _note(build) else ""),
        "created": f"{screen.instant(build.created_at)} UTC",
        "took": _took(build, hf.clock.now()),
        "waiting": f"{build.waiting} run{'' if build.waiting == 1 else 's'}",
        "result": build.result or "",
    }
    for name, value in facts.items():
        if value:
            screen.show(Text.assemble((f"{name:<12}", "bold"), f" {plain(value)}"))


def _name(build: Build) -> str:
    return f"{build.job} {build.scope}"


def _note(build: Build) -> str:
    if build.unreadable is not None:
        return json_text.marker(build.unreadable)
    match build.state:
        case "stale":
            return build.reason or ""
        case "building":
            return f"on {build.holder}"
        case "failed" | "cancelled":
            return last_line(build.error or build.failure_type or "")
    return ""


def _took(build: Build, now: datetime) -> str:
    if build.started_at is None:
        return ""
    return duration((build.finished_at or now) - build.started_at)
