"""Watching: a run that was just submitted, until it ends: a bar of its progress, with what it says above.

All of it goes to stderr, beside the result; where that is no terminal, events are plain lines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from holdfast.cli import event_lines, screen
from holdfast.cli.follow import Follower
from holdfast.engine import Holdfast
from holdfast.values.events import ENDS_AN_ATTEMPT, Event
from holdfast.values.runs import Snapshot

Tell = Callable[[Event], None]


def watch(hf: Holdfast, run_id: str, timeout: float | None) -> Snapshot:
    """Tell what happens to a run until it has ended, or ResultTimeout; how it ended."""
    follower = Follower(hf, run_id)
    try:
        with _shown(hf, run_id) as tell:
            for event in follower.events(timeout):
                tell(event)
    except KeyboardInterrupt:
        screen.note(f"run {run_id} goes on; 'holdfast runs follow' watches it, 'holdfast runs cancel' ends it")
        raise
    return follower.run


@contextlib.contextmanager
def _shown(hf: Holdfast, run_id: str) -> Iterator[Tell]:
    console = screen.stderr()
    if not console.is_terminal:
        yield lambda event: console.print(event_lines.line(event), soft_wrap=True)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[state]}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[far]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = Bar(progress, progress.add_task(_why(hf, run_id), total=None, state="queued", far=""))
        yield bar.tell


def _why(hf: Holdfast, run_id: str) -> str:
    """What a run that does not start at once waits for."""
    return screen.plain(next(iter(hf.why(run_id).reasons), ""))


class Bar:
    """How far one run is."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def tell(self, event: Event) -> None:
        if event.kind == "PROGRESS":
            self._move(event)
            return
        if event.kind == "RUN_STARTED":
            # What an earlier attempt had done is done anew, but for its steps.
            self._progress.update(self._task, state="running", far="", description="", completed=0, total=None)
        elif event.kind in ENDS_AN_ATTEMPT:
            self._progress.update(self._task, state="queued", description="")
        self._progress.console.print(event_lines.line(event), soft_wrap=True)

    def _move(self, event: Event) -> None:
        done, total = (_number(event.data.get(name)) for name in ("done", "total"))
        far = f"{done or 0:g}" if total is None else f"{done or 0:g} of {total:g}"
        note = screen.plain(event.data.get("note") or "")
        self._progress.update(self._task, completed=done or 0, total=total, far=far, description=note)


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None
