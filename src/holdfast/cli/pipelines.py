"""holdfast pipelines: where pipelines stand, stage by stage."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli import exits, screen, shapes, show, targets
from holdfast.cli.runs import json_option
from holdfast.engine import Holdfast
from holdfast.inspections import STATES
from holdfast.stages import STATES as STAGE_STATES
from holdfast.stages import PipelineInfo, StageInfo

BAR = 20
STYLES = {"NEW": "dim", "READY": "yellow", "RUNNING": "cyan", "DONE": "green", "ERROR": "red"}


@click.group()
def pipelines() -> None:
    """Look at pipelines, and do them again.

    \b
    holdfast pipelines show app:hf ID
    holdfast pipelines rerun app:hf ID --from render
    """


@pipelines.command("list")
@targets.target_argument()
@click.option("--state", type=click.Choice(STATES), help="Only pipelines in this state.")
@click.option("--name", help="Only pipelines of this name.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@click.option("--before", metavar="ID", help="Go on below this one: the last of the page before.")
@json_option
def list_(target: str, state: str | None, name: str | None, limit: int, before: str | None, as_json: bool) -> int:
    """The newest pipelines first. Times are UTC.

    \b
    holdfast pipelines list app:hf --state running
    """
    with targets.either(target) as hf:
        found = hf.pipelines.list(name=name, state=state, limit=limit, before=before)
        more = found[-1].id if len(found) == limit else None
        if as_json:
            screen.document({"pipelines": [shapes.run(run) for run in found], "next_before": more})
            return exits.OK
        if not found:
            screen.note("no pipelines" + (" like that" if state or name or before else " yet"))
            return exits.OK
        screen.show(show.list_of(found, now=hf.clock.now()))
        if more is not None:
            screen.note(f"there may be more: --before {more}", style="dim")
        return exits.OK


@pipelines.command("show")
@targets.target_argument()
@click.argument("run_id", metavar="ID")
@click.option("--follow", is_flag=True, help="Stay until it has ended; exit 1 if it did not succeed.")
@json_option
def show_(target: str, run_id: str, follow: bool, as_json: bool) -> int:
    """The stages of a pipeline: what each comes after, its state, and how far its segments are.

    \b
    holdfast pipelines show app:hf 01m2…
    holdfast pipelines show app:hf 01m2… --follow
    """
    with targets.either(target) as hf:
        if not follow:
            _tell(hf, hf.pipelines.show(run_id), as_json=as_json)
            return exits.OK
        if as_json or not screen.stdout().is_terminal:
            for info in _changes(hf, run_id):
                _tell(hf, info, as_json=as_json)
        else:
            with Live(console=screen.stdout(), auto_refresh=False) as live:
                for info in _changes(hf, run_id):
                    live.update(picture(info, now=hf.clock.now()), refresh=True)
        return exits.OK if info.run.state == "succeeded" else exits.PROBLEM


def _tell(hf: Holdfast, info: PipelineInfo, *, as_json: bool) -> None:
    if as_json:
        screen.document(shapes.pipeline(info))
    else:
        screen.show(picture(info, now=hf.clock.now()))


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
@targets.target_argument()
@click.argument("run_id", metavar="ID")
@click.option("--from", "from_stage", metavar="STAGE", required=True, help="The first stage that is done anew.")
@json_option
def rerun(target: str, run_id: str, from_stage: str, as_json: bool) -> int:
    """A new pipeline that begins at a stage, with the results of the stages before it; prints its id.

    'holdfast runs again' does all of it again.

    \b
    holdfast pipelines rerun app:hf 01m2… --from render
    """
    with targets.either(target) as hf:
        run = hf.pipelines.rerun(run_id, from_stage=from_stage)
        if as_json:
            screen.document(shapes.run(run.snapshot))
        else:
            screen.show(run.id)
        return exits.OK


def picture(info: PipelineInfo, *, now: datetime) -> RenderableType:
    """The pipeline as a tree: each stage below the one that it comes after."""
    run = info.run
    head = Text.assemble(
        (screen.plain(run.job), "bold"), "  ", screen.plain(run.id), "  ", screen.state(run.state), "  "
    )
    if run.finished_at is not None:
        head.append(f"took {screen.duration(run.finished_at - run.created_at)}", style="dim")
    else:
        head.append(f"for {screen.duration(now - run.created_at)}", style="dim")
    table = Table.grid(padding=(0, 2))
    for _ in range(4):
        table.add_column(no_wrap=True)
    drawn = dict(_tree(info.stages))
    for stage in sorted(info.stages, key=lambda one: list(drawn).index(one.name)):
        table.add_row(
            Text(f"{drawn[stage.name]}{screen.plain(stage.name)}"),
            Text(stage.state, style=STYLES[stage.state]),
            _bar(stage),
            Text(_counts(stage), style="dim"),
        )
    parts: list[RenderableType] = [head, table]
    if run.error:
        parts.append(Text(screen.plain(run.error.strip().splitlines()[-1]), style="red"))
    return Group(*parts)


def _tree(stages: tuple[StageInfo, ...]) -> list[tuple[str, str]]:
    """(stage, the lines before its name), from the top down; one that comes after several stands below the last."""
    below: dict[str | None, list[StageInfo]] = {}
    for stage in stages:
        below.setdefault(stage.after[-1] if stage.after else None, []).append(stage)
    lines: list[tuple[str, str]] = []

    def draw(parent: str | None, indent: str) -> None:
        children = below.get(parent, [])
        for number, stage in enumerate(children):
            last = number == len(children) - 1
            lines.append((stage.name, f"{indent}{'└─ ' if last else '├─ '}"))
            draw(stage.name, f"{indent}{'   ' if last else '│  '}")

    draw(None, "")
    return lines


def _bar(stage: StageInfo) -> Text:
    total, done = stage.total, stage.done
    if not total:
        return Text("█" * BAR if stage.state == "DONE" else "░" * BAR, style=STYLES[stage.state])
    full = BAR * done // total
    wrong = stage.segments.get("ERROR", 0) if stage.split else int(stage.state == "ERROR")
    red = min(BAR - full, -(-BAR * wrong // total))
    return Text.assemble(("█" * full, "green"), ("▒" * red, "red"), ("░" * (BAR - full - red), "dim"))


def _counts(stage: StageInfo) -> str:
    notes = []
    if stage.split:
        notes.append(f"{stage.done}/{stage.total}" if stage.total else "no segments" if stage.ended else "")
        others = [state for state in STAGE_STATES if state != "DONE" and stage.segments.get(state)]
        notes += [f"{stage.segments[state]} {state.lower()}" for state in others]
    if len(stage.after) > 1:
        notes.append(f"after {', '.join(stage.after)}")
    if stage.reused:
        notes.append("done before")
    return ", ".join(note for note in notes if note)
