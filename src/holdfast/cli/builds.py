"""holdfast builds: what has been built, for whom it is being built, and what is no good any more."""

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

COLUMNS = ("ID", "STATE", "JOB", "SCOPE", "FINGERPRINT", "SINCE", "TOOK", "WAITING", "NOTE")
SPARE = ("TOOK", "SINCE", "JOB", "WAITING", "FINGERPRINT")
STYLES = {"queued": "yellow", "building": "cyan", "ready": "green", "failed": "red", "cancelled": "magenta"}


@click.group()
def builds() -> None:
    """Look at builds, and have them made anew.

    \b
    holdfast builds list app:hf --state failed
    holdfast builds invalidate sqlite:///work.db ID --because "a package was withdrawn"
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
    """The newest first. ID is the run that makes it; times are UTC.

    \b
    holdfast builds list app:hf
    holdfast builds list app:hf --state failed --json | jq '.items[].error'
    """
    with targets.either(target) as hf:
        job = None if job is None else targets.job_of(job, targets.job_names(hf))
        found = hf.builds.list(job=job, scope=scope, state=state, limit=limit, before=before)
        screen.listing(
            Page.of(found, limit=limit, cursor=lambda build: build.run_id),
            as_json=as_json,
            shape=json_output.build,
            table=lambda: screen.table(COLUMNS, [_row(build, hf.clock.now()) for build in found], spare=SPARE),
            nothing="no builds" + (" like that" if state or job or scope or before else " yet"),
        )
        return exit_codes.OK


@builds.command("show")
@parameters.target_argument()
@parameters.run_argument(completion.builds)
@parameters.json_option
def show_(target: str, run_id: str, as_json: bool) -> int:
    """A build and the runs that made it, the newest first. ID is any of these.

    \b
    holdfast builds show app:hf 01m2…
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        build = hf.builds.get(run_id)
        made = hf.builds.history(build)
        if as_json:
            screen.document(json_output.build(build) | {"runs": [json_output.run(run) for run in made]})
            return exit_codes.OK
        _facts(hf, build)
        screen.show(Text("\nRuns", style="bold"))
        screen.show(run_tables.list_of(made, now=hf.clock.now()))
        return exit_codes.OK


@builds.command(short_help="Have it made anew when next asked for.")
@parameters.target_argument()
@parameters.run_argument(completion.builds)
@click.option("--because", help="Why; it stays with the build until it is made anew.")
@parameters.json_option
def invalidate(target: str, run_id: str, because: str | None, as_json: bool) -> int:
    """No one gets it any more; the next run that asks for it has it made anew.

    Runs that already wait for it go on waiting. One that is stale already keeps the reason that it has. To have it made
    at once: 'holdfast builds rebuild'.

    \b
    holdfast builds invalidate app:hf 01m2… --because "a package was withdrawn"
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        before = hf.builds.get(run_id)
        build = hf.builds.invalidate(before, because=because, **targets.signed(hf))
        if as_json:
            screen.document(json_output.build(build))
        elif before.state == "stale":
            said = f": {plain(build.because)}" if build.because else ""
            screen.show(f"{plain(_name(build))} was stale already{said}")
        else:
            screen.show(f"stale; the next run that asks for {plain(_name(build))} has it made anew")
        return exit_codes.OK


@builds.command(short_help="Make it anew, now.")
@parameters.target_argument()
@parameters.run_argument(completion.builds)
@parameters.json_option
def rebuild(target: str, run_id: str, as_json: bool) -> int:
    """Make a build anew, now; prints the id of the new run. The earlier one stays in its history.

    \b
    holdfast builds rebuild app:hf 01m2…
    """
    with targets.either(target) as hf:
        run = hf.builds.rebuild(targets.run_of(hf, run_id), **targets.signed(hf))
        run_tables.submitted(run, as_json=as_json)
        return exit_codes.OK


def _row(build: Build, now: datetime) -> list[str | Text]:
    return [
        plain(build.run_id),
        Text(build.state, style=STYLES.get(build.state, "")),
        screen.short(build.job, 40),
        screen.short(build.scope, 40),
        screen.short(build.fingerprint, 13),
        screen.instant(build.since_at),
        _took(build, now),
        str(build.waiting) if build.waiting else "",
        screen.short(_note(build), 200),
    ]


def _facts(hf: Holdfast, build: Build) -> None:
    facts = {
        "build": _name(build),
        "fingerprint": build.fingerprint,
        "state": build.state + (f": {_note(build)}" if _note(build) else ""),
        "asked for": f"{screen.instant(build.since_at)} UTC",
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
            return build.because or ""
        case "building":
            return f"on {build.holder}"
        case "failed" | "cancelled":
            return last_line(build.error or build.failure_type or "")
    return ""


def _took(build: Build, now: datetime) -> str:
    if build.started_at is None:
        return ""
    return duration((build.finished_at or now) - build.started_at)
