"""Pipelines as a tree, with each stage below the stage that it depends on."""

from __future__ import annotations

from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.cli import run_tables, screen
from holdfast.pipelines.stages import FEW
from holdfast.support.text import duration, plain
from holdfast.values.pipelines import PipelineInfo, StageFailure, StageInfo, in_words
from holdfast.values.runs import last_line

BAR = 20
STYLES = {"NEW": "dim", "READY": "yellow", "RUNNING": "cyan", "DONE": "green", "ERROR": "red"}


def picture(info: PipelineInfo, *, now: datetime) -> RenderableType:
    """Return the pipeline's name, state, time, stages and error."""
    run = info.run
    head = Text.assemble((plain(run.job), "bold"), "  ", plain(run.id), "  ")
    head.append_text(run_tables.state_of(run, info.progress))
    taken = info.progress.took(run, now=now)
    if taken is not None:
        head.append(f"  {'took' if run.ended else 'for'} {duration(taken)}", style="dim")
    parts = [head, stages(info)]
    if run.error:
        parts.append(Text(plain(last_line(run.error)), style="red"))
    return Group(*parts)


def stages(info: PipelineInfo) -> RenderableType:
    """Return the stages with states, bars and counts, and below them the runs that failed or will be retried."""
    table = _grid()
    drawn = dict(_tree(info.stages))
    for stage in sorted(info.stages, key=lambda one: list(drawn).index(one.name)):
        table.add_row(
            Text(f"{drawn[stage.name]}{plain(stage.name)}"),
            Text(stage.state, style=STYLES[stage.state]),
            _bar(stage),
            Text(_counts(stage), style="dim"),
        )
    return Group(table, _failures(info)) if info.failures else table


def _failures(info: PipelineInfo) -> RenderableType:
    table = _grid()
    for failure in info.failures:
        table.add_row(
            Text(screen.short(failure.name, 40)),
            Text(plain(failure.run_id)),
            Text(_status(failure), style="yellow" if failure.retry_at else "red"),
            Text(screen.short(failure.error, 200)),
        )
    if len(info.failures) < FEW:
        return table
    more = "there may be more: 'holdfast runs list --parent ID' lists all runs of the pipeline"
    return Group(table, Text(more, style="dim"))


def _grid() -> Table:
    """Return a grid of four columns. Only the last one wraps, because names and ids must not be cut."""
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _status(failure: StageFailure) -> str:
    if failure.retry_at is None:
        return failure.state
    return f"to be tried again at {failure.retry_at:%H:%M:%S} UTC"


def _tree(stages: tuple[StageInfo, ...]) -> list[tuple[str, str]]:
    """Return each stage name with its tree prefix, from top to bottom.

    A stage that comes after several others is drawn below the last of them.
    """
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
    if stage.split and (stage.total or stage.state == "DONE"):
        notes.append(f"{stage.done}/{stage.total}" if stage.total else "no segments")
    notes += in_words(stage)
    if len(stage.after) > 1:
        notes.append(f"after {', '.join(stage.after)}")
    if stage.reused:
        notes.append("reused")
    return ", ".join(notes)
