"""holdfast pipelines: where pipelines stand, stage by stage."""

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
    """Look at pipelines, and do them again. A pipeline is a run: 'holdfast runs cancel' stops it with all its stages.

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
    """The newest pipelines first. Times are UTC.

    One that is under way is found by --state queued: its stages run, and its own run waits for them.

    \b
    holdfast pipelines list app:hf --state queued
    """
    with targets.either(target) as hf:
        found = hf.pipelines.list(name=name, state=state, limit=limit, before=before)
        far = hf.pipelines.progress(found)
        screen.listing(
            Page.of(found, limit=limit, cursor=lambda run: run.id),
            as_json=as_json,
            shape=lambda run: json_output.run(run) | {"progress": far.get(run.id)},
            table=lambda: run_tables.list_of(found, now=hf.clock.now(), far=far),
            nothing="no pipelines" + (" like that" if state or name or before else " yet"),
        )
        return exit_codes.OK


@pipelines.command("show")
@parameters.target_argument()
@parameters.run_argument(completion.pipelines)
@click.option("--follow", is_flag=True, help="Stay until it has ended; exit 1 if it did not succeed.")
@parameters.json_option
def show_(target: str, run_id: str, follow: bool, as_json: bool) -> int:
    """The stages of a pipeline: what each comes after, its state, how far its segments are, and the runs that failed.

    'holdfast runs list --parent ID' has the runs of its stages and segments; 'holdfast runs cancel' ends it.

    \b
    holdfast pipelines show app:hf 01m2…
    holdfast pipelines show app:hf 01m2… --follow
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        if not follow:
            _tell(hf, hf.pipelines.show(run_id), as_json=as_json)
            return exit_codes.OK
        if as_json or not screen.stdout().is_terminal:
            for info in _changes(hf, run_id):
                _tell(hf, info, as_json=as_json)
        else:
            with Live(console=screen.stdout(), auto_refresh=False) as live:
                for info in _changes(hf, run_id):
                    live.update(pipeline_tree.picture(info, now=hf.clock.now()), refresh=True)
        return exit_codes.OK if info.run.state == "succeeded" else exit_codes.PROBLEM


def _tell(hf: Holdfast, info: PipelineInfo, *, as_json: bool) -> None:
    if as_json:
        screen.document(json_output.pipeline(info))
    else:
        screen.show(pipeline_tree.picture(info, now=hf.clock.now()))


def _changes(hf: Holdfast, run_id: str) -> Iterator[PipelineInfo]:
    """The pipeline as it stands, and anew whenever it has changed, until it has ended."""
    pause, told = threading.Event(), None
    while told is None or not told.run.ended:
        info = hf.pipelines.show(run_id)
        if told is None or (info.stages, info.run.state) != (told.stages, told.run.state):
            yield info
        told = info
        if not info.run.ended:
            pause.wait(hf.settings.tick.total_seconds())


@pipelines.command(short_help="Do it again, from a stage on.")
@parameters.target_argument()
@parameters.run_argument(completion.pipelines)
@click.option("--from", "from_stage", metavar="STAGE", required=True, help="The first stage that is done anew.")
@parameters.json_option
def rerun(target: str, run_id: str, from_stage: str, as_json: bool) -> int:
    """A new pipeline that begins at a stage, with the results of the stages before it; prints its id.

    'holdfast runs again' does all of it again.

    \b
    holdfast pipelines rerun app:hf 01m2… --from render
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        run = hf.pipelines.rerun(run_id, from_stage=from_stage, **targets.signed(hf))
        run_tables.submitted(run, as_json=as_json)
        return exit_codes.OK
