"""holdfast pipelines: list, show and rerun pipelines."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import click
from rich.live import Live

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
from holdfast.values.filters import STATES
from holdfast.values.pages import Page
from holdfast.values.pipelines import PipelineInfo


@click.group()
def pipelines() -> None:
    """List, inspect and rerun pipelines.

    A pipeline is a run: 'holdfast runs cancel' cancels it together with all its stages.

    \b
    holdfast pipelines show app:hf ID
    holdfast pipelines rerun app:hf ID --from render
    """


@pipelines.command("list")
@parameters.target_argument()
@click.option("--state", type=click.Choice(STATES), help="Only pipelines in this state.")
@click.option("--name", help="Only pipelines of this name.")
@parameters.limit_option
@parameters.before_option(completion.pipelines)
@parameters.json_option
def list_(target: str, state: str | None, name: str | None, limit: int, before: str | None, as_json: bool) -> int:
    """List pipelines, the newest first. Times are UTC.

    A pipeline that is under way has the state queued, because its own run waits while its stages run.

    \b
    holdfast pipelines list app:hf --state queued
    """
    with targets.resolve(target) as hf:
        found = hf.pipelines.list(name=name, state=state, limit=limit, before=before)
        progress = hf.pipelines.progress(found)
        screen.listing(
            Page.of(found, limit=limit, cursor=lambda run: run.id),
            as_json=as_json,
            shape=lambda run: json_output.run(run) | {"progress": progress.get(run.id)},
            table=lambda: run_tables.list_of(found, now=hf.clock.now(), progress=progress),
            empty="no matching pipelines" if state or name or before else "no pipelines yet",
        )
        return exit_codes.OK


@pipelines.command("show")
@parameters.target_argument()
@parameters.run_argument(completion.pipelines)
@click.option("--follow", is_flag=True, help="Update until the pipeline has ended; exit with 1 if it did not succeed.")
@parameters.json_option
def show_(target: str, run_id: str, follow: bool, as_json: bool) -> int:
    """Show the stages of a pipeline, and the runs that failed.

    The stages are in the order in which they run, each with its state and progress.
    'holdfast runs list --parent ID' lists the runs of its stages and segments. 'holdfast runs cancel' cancels the
    pipeline.

    \b
    holdfast pipelines show app:hf 01m2…
    holdfast pipelines show app:hf 01m2… --follow
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        if not follow:
            _print(hf, hf.pipelines.show(run_id), as_json=as_json)
            return exit_codes.OK
        if as_json or not screen.stdout().is_terminal:
            for info in _changes(hf, run_id):
                _print(hf, info, as_json=as_json)
        else:
            with Live(console=screen.stdout(), auto_refresh=False) as live:
                for info in _changes(hf, run_id):
                    live.update(pipeline_tree.picture(info, now=hf.clock.now()), refresh=True)
        return exit_codes.OK if info.run.state == "succeeded" else exit_codes.PROBLEM


def _print(hf: Holdfast, info: PipelineInfo, *, as_json: bool) -> None:
    if as_json:
        screen.document(json_output.pipeline(info))
    else:
        screen.show(pipeline_tree.picture(info, now=hf.clock.now()))


def _changes(hf: Holdfast, run_id: str) -> Iterator[PipelineInfo]:
    """Yield the pipeline now and whenever it has changed, until it has ended."""
    pause, previous = threading.Event(), None
    while previous is None or not previous.run.ended:
        info = hf.pipelines.show(run_id)
        if previous is None or (info.stages, info.run.state) != (previous.stages, previous.run.state):
            yield info
        previous = info
        if not info.run.ended:
            pause.wait(hf.settings.poll_interval.total_seconds())


@pipelines.command(short_help="Run a pipeline again from a given stage.")
@parameters.target_argument()
@parameters.run_argument(completion.pipelines)
@click.option("--from", "from_stage", metavar="STAGE", required=True, help="The first stage to run again.")
@parameters.json_option
def rerun(target: str, run_id: str, from_stage: str, as_json: bool) -> int:
    """Start a new pipeline at a given stage and print its id. It reuses the results of the earlier stages.

    'holdfast runs again' repeats the whole pipeline instead.

    \b
    holdfast pipelines rerun app:hf 01m2… --from render
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        run = hf.pipelines.rerun(run_id, from_stage=from_stage, **targets.audit_fields(hf))
        run_tables.submitted(run, as_json=as_json)
        return exit_codes.OK
