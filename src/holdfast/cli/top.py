"""holdfast top: how it goes, again every second, until someone has seen enough."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from holdfast.app import Holdfast
from holdfast.cli import exit_codes, parameters, queues, screen, targets
from holdfast.cli.workers import ending
from holdfast.runs.workers import by_worker
from holdfast.support.errors import ServerUnavailable, StoreBusy, StoreUnavailable
from holdfast.support.text import duration, plain
from holdfast.values.filters import RunFilter
from holdfast.values.runs import Snapshot, last_line
from holdfast.values.statistics import Overview, Times
from holdfast.values.workers import Task, WorkerInfo

WORKERS = ("WORKER", "BUSY", "HEARD", "QUEUES", "DOES")
FAILURES = ("FAILED AT", "ID", "JOB", "ERROR")
NEWEST = 5
SPARE_LINES = 12  # what a frame has besides the rows of its tables


@click.command(short_help="A live view: depth, rates, workers, failures.")
@parameters.target_argument()
@click.option(
    "--every",
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Look so often.",
)
@click.option("--once", is_flag=True, help="Print it once, for a pipe or a file.")
def top(target: str, every: float, once: bool) -> int:
    """What waits and runs, how fast it goes, what each worker does, and the newest failures. q or Ctrl-C ends it.

    \b
    holdfast top app:hf
    holdfast top sqlite:///work.db --once
    """
    with targets.either(target) as hf:
        if once or not sys.stdout.isatty():
            screen.show(frame(look(hf), height=None))
            return exit_codes.OK
        with contextlib.suppress(KeyboardInterrupt):
            _watch(hf, every)
        return exit_codes.OK


def _watch(hf: Holdfast, every: float) -> None:
    console = screen.stdout()
    with _keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(_frame(hf, console.height), refresh=True)
            if pressed(every) in ("q", "Q", "\x03", "\x04"):
                return


def _frame(hf: Holdfast, height: int) -> RenderableType:
    """How it stands; a database (or a server) that is away for a moment is told of and asked again."""
    try:
        return frame(look(hf), height=height)
    except (StoreUnavailable, StoreBusy, ServerUnavailable) as error:
        return trouble(str(error))


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """A key that is pressed within so many seconds, or nothing; where no one can press one, just the pause."""
    if not sys.stdin.isatty():
        yield lambda seconds: _pressed([], seconds)
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield lambda seconds: _pressed([terminal], seconds)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _pressed(terminals: list[int], seconds: float) -> str:
    ready, _, _ = select.select(terminals, [], [], seconds)
    # A terminal that has gone reads as nothing, at once and for ever: as good as Ctrl-D.
    return (os.read(ready[0], 1).decode("utf-8", "replace") or "\x04") if ready else ""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """All that a frame tells of, from questions that cost the same however much has ended."""

    overview: Overview
    workers: Sequence[WorkerInfo]
    tasks: Mapping[str, Sequence[Task]]
    failures: Sequence[Snapshot]


def look(hf: Holdfast) -> Moment:
    """Ask how it stands now."""
    failed = [run for state in ("failed", "timed_out") for run in hf.search(RunFilter(state=state), limit=NEWEST).items]
    return Moment(
        overview=hf.statistics.overview(),
        workers=hf.workers.list(),
        tasks=by_worker(hf.workers.tasks()),
        failures=sorted(failed, key=lambda run: run.finished_at or run.created_at, reverse=True)[:NEWEST],
    )


def frame(moment: Moment, *, height: int | None) -> RenderableType:
    """A moment for a screen of so many lines; of each table as many rows as there is room for."""
    room = None if height is None else max(2, (height - SPARE_LINES - len(moment.failures)) // 2)
    parts: list[RenderableType] = [_headline(moment.overview), _pace(moment.overview), Text()]
    rows = [queues.row(queue, moment.overview.at, moment.workers) for queue in moment.overview.queues]
    parts += _table("no queue has anything", queues.COLUMNS, rows, room, spare=("LIMIT", "AT ONCE", *queues.SPARE))
    workers = [_worker(worker, moment) for worker in moment.workers]
    parts += _table("no worker is alive", WORKERS, workers, room, spare=("QUEUES", "HEARD"))
    parts += _table("nothing failed", FAILURES, [_failure(run) for run in moment.failures], None, spare=("JOB",))
    return Group(*parts[:-1])


def trouble(message: str) -> RenderableType:
    """What is shown while the database can't be asked."""
    return Text(f"the database can't be asked: {plain(message)}", style="red")


def _headline(seen: Overview) -> Text:
    more = "+" if seen.more else ""
    line = Text(f"{seen.at:%H:%M:%S} UTC   ", style="bold")
    line.append(f"{seen.queued:,}{more} queued   {seen.running:,} running of {seen.capacity:,}   ")
    line.append(f"{seen.workers} {'worker' if seen.workers == 1 else 'workers'}", style="" if seen.workers else "red")
    if seen.oldest_waiting is not None:
        line.append(f"   oldest ready: {duration(seen.oldest_waiting)}")
    if seen.paused:
        line.append(f"   paused: {plain(', '.join(seen.paused))}", style="yellow")
    return line


def _pace(seen: Overview) -> Text:
    pace = seen.pace
    rate = "" if pace.success_rate is None else f"   {pace.success_rate:.0%} succeeded"
    line = Text(f"{pace.per_second:.1f} runs/s{rate}", style="")
    return line.append(f"   waited {_times(pace.waited)}   ran {_times(pace.ran)}", style="dim")


def _times(found: Times) -> str:
    told = ((50, found.p50), (95, found.p95), (99, found.p99))
    return " ".join(f"p{name} {duration(value)}" for name, value in told if value is not None) or "-"


def _table(
    nothing: str, columns: Sequence[str], rows: list[tuple[str | Text, ...]], room: int | None, *, spare: Sequence[str]
) -> list[RenderableType]:
    if not rows:
        return [Text(nothing, style="dim"), Text()]
    shown = rows if room is None or len(rows) <= room else rows[: room - 1]
    more = [Text(f"and {len(rows) - len(shown)} more", style="dim")] if len(shown) < len(rows) else []
    return [screen.table(columns, shown, spare=spare), *more, Text()]


def _worker(worker: WorkerInfo, moment: Moment) -> tuple[str | Text, ...]:
    tasks = moment.tasks.get(worker.id, ())
    does = ", ".join(f"{task.job} {duration(moment.overview.at - task.started_at)}" for task in tasks)
    return (
        plain(worker.id),
        f"{len(tasks)} of {worker.concurrency}",
        f"{duration(moment.overview.at - worker.seen_at)} ago",
        plain(", ".join(worker.queues)),
        ending(worker, does),
    )


def _failure(run: Snapshot) -> tuple[str | Text, ...]:
    error = last_line(run.error or run.failure_type or "")
    at = "" if run.finished_at is None else f"{run.finished_at:%H:%M:%S}"
    return at, plain(run.id), plain(run.job), Text(plain(error[:500]), style="red")
