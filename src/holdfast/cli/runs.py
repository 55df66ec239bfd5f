"""holdfast runs: list, inspect, follow, cancel and repeat runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from rich.padding import Padding
from rich.text import Text

from holdfast.app import Holdfast
from holdfast.cli import (
    completion,
    exit_codes,
    json_output,
    parameters,
    pipeline_tree,
    run_tables,
    screen,
    targets,
)
from holdfast.cli.follow import follow
from holdfast.cli.submit import tag_of
from holdfast.support.text import plain
from holdfast.support.validation import did_you_mean
from holdfast.values.events import Event
from holdfast.values.filters import STATES, RunFilter
from holdfast.values.pages import Page
from holdfast.values.runs import Snapshot, Why


@click.group()
def runs() -> None:
    """List, inspect, follow, cancel and repeat runs.

    \b
    holdfast runs list app:hf --state failed
    holdfast runs why sqlite:///work.db ID
    """


@runs.command("list")
@parameters.target_argument()
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state.")
@click.option(
    "--job", shell_complete=completion.jobs, help="Only runs of this job; the last part of its name is enough."
)
@click.option("--queue", shell_complete=completion.queues, help="Only runs of this queue.")
@click.option(
    "--tag",
    metavar="NAME=VALUE",
    callback=lambda *given: tag_of(given[2]) if given[2] else None,
    help="Only runs with this tag.",
)
@click.option(
    "--parent",
    metavar="ID",
    shell_complete=completion.runs,
    help="Only stages and segments of this pipeline, or children of this run.",
)
@click.option("--all", "all_", is_flag=True, help="Include the stages and segments of pipelines.")
@parameters.limit_option
@parameters.before_option()
@parameters.json_option
def list_(
    target: str,
    state: str | None,
    job: str | None,
    queue: str | None,
    tag: tuple[str, str] | None,
    parent: str | None,
    all_: bool,
    limit: int,
    before: str | None,
    as_json: bool,
) -> int:
    """List runs, the newest first. Times are UTC.

    --all, --parent and --job include the stages and segments of pipelines. For example, 'film.audio[3]' is segment 3 of
    the stage audio, and 'film.audio[]' is the run that collects the results of its segments.

    \b
    holdfast runs list app:hf
    holdfast runs list sqlite:///work.db --state failed --limit 10
    holdfast runs list app:hf --parent 01m2… --state failed
    holdfast runs list app:hf --json | jq '.items[].id'
    """
    with targets.resolve(target) as hf:
        if parent is not None:
            parent = hf.snapshot(targets.full_run_id(hf, parent)).id  # raises for a misspelt id
        jobs = set() if job is None else targets.job_names(hf)
        job = None if job is None else targets.full_job_name(job, jobs)
        parts = all_ or parent is not None or job is not None
        wanted = RunFilter(state=state, job=job, queue=queue, tag=tag, parent=parent, parts=parts)
        found = targets.find_runs(hf, wanted, limit=limit, before=before)
        likely = "" if job is None or job in jobs else did_you_mean(job, jobs)
        narrowed = state or job or queue or tag or parent or before
        screen.listing(
            Page.of(found, limit=limit, cursor=lambda run: run.id),
            as_json=as_json,
            shape=json_output.run,
            table=lambda: run_tables.list_of(found, now=hf.clock.now(), progress=hf.pipelines.progress(found)),
            empty=("no matching runs" if narrowed else "no runs yet") + likely,
        )
        return exit_codes.OK


@runs.command("show")
@parameters.target_argument()
@parameters.run_argument()
@parameters.json_option
def show_(target: str, run_id: str, as_json: bool) -> int:
    """Show everything about a run.

    This includes its fields, why it is in its state, its result or error, and its timeline.

    \b
    holdfast runs show app:hf 01m2…
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        answer, timeline = hf.why(run_id), hf.timeline(run_id)
        if as_json:
            screen.document(json_output.run(answer.run) | {"reasons": list(answer.reasons), "timeline": timeline})
        else:
            _print(hf, answer, timeline)
        return exit_codes.OK


def _print(hf: Holdfast, answer: Why, timeline: Sequence[Event]) -> None:
    """Print the fields of a run, the stages of a pipeline, the explanation of its state, and its timeline."""
    run, now = answer.run, hf.clock.now()
    info = hf.pipelines.show(run.id) if run.kind == "pipeline" else None
    run_tables.facts(run, now=now, arguments=_arguments(hf, run), progress=info.progress if info else None)
    if info is not None:
        screen.show(Text("\nStages", style="bold"))
        screen.show(Padding(pipeline_tree.stages(info), (0, 0, 0, 2)))
        screen.show(f"  the runs of these stages: holdfast runs list … --parent {plain(run.id)}")
    run_tables.reasons(answer, timeline)


def _arguments(hf: Holdfast, run: Snapshot) -> Any:
    """Return the arguments of a run; a segment's value appears under the name of its parameter."""
    if run.kind == "segment" and run.parent_id is not None and isinstance(run.args, dict) and "value" in run.args:
        return {_parameter(hf, run.parent_id, run.stage): run.args["value"]}
    return run.arguments


def _parameter(hf: Holdfast, pipeline_id: str, stage: str | None) -> str:
    """Return the name of the parameter that receives a segment's value."""
    try:
        stages = hf.snapshot(pipeline_id).args["stages"]
        return str(next(one["split"]["parameter"] for one in stages if one["name"] == stage))
    except (KeyError, TypeError, StopIteration):
        return "value"


@runs.command(short_help="Explain the state of a run.")
@parameters.target_argument()
@parameters.run_argument()
@parameters.json_option
def why(target: str, run_id: str, as_json: bool) -> int:
    """Explain the state of a run: what it waits for, which worker runs it, or how it ended.

    \b
    holdfast runs why app:hf 01m2…
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        answer = hf.why(run_id)
        if as_json:
            screen.document(json_output.why(answer))
        else:
            screen.show(screen.state(answer.run.state))
            for reason in answer.reasons:
                screen.show(f"  {plain(reason)}")
        return exit_codes.OK


@runs.command(short_help="Cancel a run.")
@parameters.target_argument()
@parameters.run_argument()
@click.option("--reason", default="cancelled", show_default=True, help="The reason, stored with the run.")
@parameters.json_option
def cancel(target: str, run_id: str, reason: str, as_json: bool) -> int:
    """Cancel a run. A queued run never starts, and a running one is stopped by its worker.

    If the run has already ended, the exit code is 1.

    \b
    holdfast runs cancel app:hf 01m2… --reason "wrong file"
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        state = hf.cancel(run_id, reason=reason, **targets.audit_fields(hf))
        sentence = {
            "cancelled": "cancelled",
            "running": "cancellation requested; its worker stops it soon ('holdfast runs follow' shows when)",
        }.get(state, f"not cancelled: the run had already ended as {state}")
        screen.answer({"id": run_id, "state": state}, sentence, as_json=as_json)
        return exit_codes.OK if state in ("cancelled", "running") else exit_codes.PROBLEM


@runs.command(short_help="Submit the same job and arguments again.")
@parameters.target_argument()
@parameters.run_argument()
@parameters.json_option
def again(target: str, run_id: str, as_json: bool) -> int:
    """Submit a new run of the same job with the same arguments, and print its id. The old run does not change.

    \b
    holdfast runs again app:hf 01m2…
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        run = hf.again(run_id, **targets.audit_fields(hf))
        run_tables.submitted(run, as_json=as_json)
        return exit_codes.OK


runs.add_command(follow)
