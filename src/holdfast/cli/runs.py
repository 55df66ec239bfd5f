"""holdfast runs: look at runs and steer them."""

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
    """Look at runs, and steer them.

    \b
    holdfast runs list app:hf --state failed
    holdfast runs why sqlite:///work.db ID
    """


@runs.command("list")
@parameters.target_argument()
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state.")
@click.option("--job", shell_complete=completion.jobs, help="Only runs of this job; the last part of its name will do.")
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
@click.option("--all", "all_", is_flag=True, help="Stages and segments of pipelines too.")
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
    """The newest runs first. Times are UTC.

    A pipeline's stages and segments are listed with --all, --parent or their --job: 'film.audio[3]' is segment 3 of
    stage audio, 'film.audio[]' what collects its segments.

    \b
    holdfast runs list app:hf
    holdfast runs list sqlite:///work.db --state failed --limit 10
    holdfast runs list app:hf --parent 01m2… --state failed
    holdfast runs list app:hf --json | jq '.items[].id'
    """
    with targets.either(target) as hf:
        if parent is not None:
            parent = hf.snapshot(targets.run_of(hf, parent)).id  # so that a misspelt id is no empty list
        jobs = set() if job is None else targets.job_names(hf)
        job = None if job is None else targets.job_of(job, jobs)
        parts = all_ or parent is not None or job is not None
        wanted = RunFilter(state=state, job=job, queue=queue, tag=tag, parent=parent, parts=parts)
        found = targets.find_runs(hf, wanted, limit=limit, before=before)
        likely = "" if job is None or job in jobs else did_you_mean(job, jobs)
        narrowed = state or job or queue or tag or parent or before
        screen.listing(
            Page.of(found, limit=limit, cursor=lambda run: run.id),
            as_json=as_json,
            shape=json_output.run,
            table=lambda: run_tables.list_of(found, now=hf.clock.now(), far=hf.pipelines.progress(found)),
            nothing="no runs" + (" like that" if narrowed else " yet") + likely,
        )
        return exit_codes.OK


@runs.command("show")
@parameters.target_argument()
@parameters.run_argument()
@parameters.json_option
def show_(target: str, run_id: str, as_json: bool) -> int:
    """Everything about a run, and its story.

    \b
    holdfast runs show app:hf 01m2…
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        answer, story = hf.why(run_id), hf.story(run_id)
        if as_json:
            screen.document(json_output.run(answer.run) | {"reasons": list(answer.reasons), "story": story})
        else:
            _tell(hf, answer, story)
        return exit_codes.OK


def _tell(hf: Holdfast, answer: Why, story: Sequence[Event]) -> None:
    """A run for a person: its facts, a pipeline's stages, why it is where it is, and its story."""
    run, now = answer.run, hf.clock.now()
    info = hf.pipelines.show(run.id) if run.kind == "pipeline" else None
    run_tables.facts(run, now=now, arguments=_arguments(hf, run), far=info.progress if info else None)
    if info is not None:
        screen.show(Text("\nStages", style="bold"))
        screen.show(Padding(pipeline_tree.stages(info), (0, 0, 0, 2)))
        screen.show(f"  their runs: holdfast runs list … --parent {plain(run.id)}")
    run_tables.reasons(answer, story)


def _arguments(hf: Holdfast, run: Snapshot) -> Any:
    """What it was given; the value of a segment by the name of its parameter."""
    if run.kind == "segment" and run.parent_id is not None and isinstance(run.args, dict) and "value" in run.args:
        return {_parameter(hf, run.parent_id, run.stage): run.args["value"]}
    return run.arguments


def _parameter(hf: Holdfast, pipeline_id: str, stage: str | None) -> str:
    """The parameter that gets the value of a segment of this stage."""
    try:
        stages = hf.snapshot(pipeline_id).args["stages"]
        return str(next(one["split"]["parameter"] for one in stages if one["name"] == stage))
    except (KeyError, TypeError, StopIteration):
        return "value"


@runs.command(short_help="Why a run is where it is.")
@parameters.target_argument()
@parameters.run_argument()
@parameters.json_option
def why(target: str, run_id: str, as_json: bool) -> int:
    """Why a run is where it is: what it waits for, who runs it, how it ended.

    \b
    holdfast runs why app:hf 01m2…
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        answer = hf.why(run_id)
        if as_json:
            screen.document(json_output.why(answer))
        else:
            screen.show(screen.state(answer.run.state))
            for reason in answer.reasons:
                screen.show(f"  {plain(reason)}")
        return exit_codes.OK


@runs.command(short_help="End a run, or ask it to stop.")
@parameters.target_argument()
@parameters.run_argument()
@click.option("--reason", default="cancelled", show_default=True, help="Why; it stays with the run.")
@parameters.json_option
def cancel(target: str, run_id: str, reason: str, as_json: bool) -> int:
    """End a run that has not started; ask a running one to stop. Exit 1 if it had ended before.

    \b
    holdfast runs cancel app:hf 01m2… --reason "wrong file"
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        state = hf.cancel(run_id, reason=reason, **targets.signed(hf))
        sentence = {
            "cancelled": "cancelled",
            "running": "asked to stop; its worker stops it ('runs follow' shows when)",
        }.get(state, f"too late: it had ended {state}")
        screen.answer({"id": run_id, "state": state}, sentence, as_json=as_json)
        return exit_codes.OK if state in ("cancelled", "running") else exit_codes.PROBLEM


@runs.command(short_help="A new run like that one.")
@parameters.target_argument()
@parameters.run_argument()
@parameters.json_option
def again(target: str, run_id: str, as_json: bool) -> int:
    """A new run of the same job with the same arguments; prints its id. The old one stays as it is.

    \b
    holdfast runs again app:hf 01m2…
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        run = hf.again(run_id, **targets.signed(hf))
        run_tables.submitted(run, as_json=as_json)
        return exit_codes.OK


runs.add_command(follow)
