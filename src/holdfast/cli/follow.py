"""holdfast runs follow: a run's events as they happen, until it ends.

`watch` does the same for `holdfast submit`: a bar of the run's progress, with its events above. All of it goes to
stderr, beside the result; where that is no terminal, events are plain lines.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from holdfast.app import Holdfast
from holdfast.cli import event_lines, exit_codes, parameters, screen, targets
from holdfast.support.errors import ResultTimeout
from holdfast.support.text import plain
from holdfast.values.events import ENDS_AN_ATTEMPT, Event
from holdfast.values.runs import Snapshot

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

SOON, LATER = 0.1, 1.0
PAGE = 1000

Tell = Callable[[Event], None]


@click.command(short_help="A run's events as they happen, until it ends.")
@parameters.target_argument()
@parameters.run_argument()
@click.option("--timeout", type=click.FloatRange(min=0), help="Follow at most so many seconds (then exit 8).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as it happens.")
def follow(target: str, run_id: str, timeout: float | None, as_json: bool) -> int:
    """Print a run's events as they happen until it has ended. Exit 0 if it succeeded, else 1.

    \b
    holdfast runs follow app:hf 01m2…
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        follower = Follower(hf, run_id)
        for event in follower.events(timeout):
            if as_json:
                screen.line(event)
            else:
                screen.show(event_lines.line(event))
        return exit_codes.OK if follower.run.state == "succeeded" else exit_codes.PROBLEM


class Follower:
    """Reads what is new, seldom when nothing is."""

    def __init__(self, hf: Holdfast, run_id: str) -> None:
        self._hf, self._run_id = hf, run_id
        self._after: str | None = None
        self.run: Snapshot = hf.snapshot(run_id)

    def events(self, timeout: float | None) -> Iterator[Event]:
        clock = self._hf.clock
        started, pause = clock.elapsed(), SOON
        while True:
            news = self._hf.news(self._run_id, after=self._after, limit=PAGE)
            self.run = news.run
            for self._after, event in news.events:
                yield event
            if news.ended:
                return
            if timeout is not None and clock.elapsed() - started >= timeout:
                raise ResultTimeout(f"run {self._run_id} is still {self.run.state} after {timeout:g} s")
            pause = SOON if news.events else min(pause * 1.5, LATER)
            if len(news.events) < PAGE:
                threading.Event().wait(pause)


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
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

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
    return plain(next(iter(hf.why(run_id).reasons), ""))


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
        note = plain(event.data.get("note") or "")
        self._progress.update(self._task, completed=done or 0, total=total, far=far, description=note)


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None
