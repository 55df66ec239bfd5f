"""holdfast runs follow: print the events of a run as they happen, until it has ended.

`watch` does the same for `holdfast submit --follow`: it shows a progress bar with the events above. It writes to
stderr, because stdout is for the result. If stderr is not a terminal, it prints the events as plain lines.
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

ShowEvent = Callable[[Event], None]


@click.command(short_help="Print the events of a run until it has ended.")
@parameters.target_argument()
@parameters.run_argument()
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Follow at most this long, then exit with code 8.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each event as one line of JSON.")
def follow(target: str, run_id: str, timeout: float | None, as_json: bool) -> int:
    """Print the events of a run as they happen, until it has ended. Exit with 0 if it succeeded, otherwise with 1.

    \b
    holdfast runs follow app:hf 01m2…
    """
    with targets.resolve(target) as hf:
        run_id = targets.full_run_id(hf, run_id)
        follower = Follower(hf, run_id)
        for event in follower.events(timeout):
            if as_json:
                screen.line(event)
            else:
                screen.show(event_lines.line(event))
        return exit_codes.OK if follower.run.state == "succeeded" else exit_codes.PROBLEM


class Follower:
    """Reads the new events of a run, polling less often while there are none."""

    def __init__(self, hf: Holdfast, run_id: str) -> None:
        self._hf, self._run_id = hf, run_id
        self._after: str | None = None
        self.run: Snapshot = hf.snapshot(run_id)

    def events(self, timeout: float | None) -> Iterator[Event]:
        clock = self._hf.clock
        started, pause = clock.elapsed(), SOON
        while True:
            page = self._hf.timeline_page(self._run_id, after=self._after, limit=PAGE)
            self.run = page.run
            for self._after, event in page.events:
                yield event
            if page.ended:
                return
            if timeout is not None and clock.elapsed() - started >= timeout:
                raise ResultTimeout(f"run {self._run_id} is still {self.run.state} after {timeout:g} s")
            pause = SOON if page.events else min(pause * 1.5, LATER)
            if len(page.events) < PAGE:
                threading.Event().wait(pause)


def watch(hf: Holdfast, run_id: str, timeout: float | None) -> Snapshot:
    """Show the events of a run until it has ended, and return it; raise ResultTimeout if that takes too long."""
    follower = Follower(hf, run_id)
    try:
        with _display(hf, run_id) as show:
            for event in follower.events(timeout):
                show(event)
    except KeyboardInterrupt:
        screen.note(
            f"run {run_id} is not affected; 'holdfast runs follow' follows it, 'holdfast runs cancel' cancels it"
        )
        raise
    return follower.run


@contextlib.contextmanager
def _display(hf: Holdfast, run_id: str) -> Iterator[ShowEvent]:
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
        TextColumn("{task.fields[progress]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        bar = Bar(progress, progress.add_task(_why(hf, run_id), total=None, state="queued", progress=""))
        yield bar.show


def _why(hf: Holdfast, run_id: str) -> str:
    """Return the first reason why a run has not started yet."""
    return plain(next(iter(hf.why(run_id).reasons), ""))


class Bar:
    """The progress bar of one run."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def show(self, event: Event) -> None:
        if event.kind == "PROGRESS":
            self._move(event)
            return
        if event.kind == "RUN_STARTED":
            # A new attempt starts from the beginning, except for finished steps.
            self._progress.update(self._task, state="running", progress="", description="", completed=0, total=None)
        elif event.kind in ENDS_AN_ATTEMPT:
            self._progress.update(self._task, state="queued", description="")
        self._progress.console.print(event_lines.line(event), soft_wrap=True)

    def _move(self, event: Event) -> None:
        done, total = (_number(event.data.get(name)) for name in ("done", "total"))
        text = f"{done or 0:g}" if total is None else f"{done or 0:g} of {total:g}"
        note = plain(event.data.get("note") or "")
        self._progress.update(self._task, completed=done or 0, total=total, progress=text, description=note)


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None
