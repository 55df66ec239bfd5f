"""holdfast top: a live view of queues, throughput, workers and failures."""

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
from holdfast.values.workers import ActiveRun, WorkerInfo

WORKERS = ("WORKER", "BUSY", "LAST SEEN", "QUEUES", "RUNNING")
FAILURES = ("FAILED AT", "ID", "JOB", "ERROR")
NEWEST = 5
SPARE_LINES = 12  # lines of a frame that are not table rows


@click.command(short_help="Show queues, throughput, workers and failures, live.")
@parameters.target_argument()
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between updates.",
)
@click.option("--once", is_flag=True, help="Print one frame and exit.")
def top(target: str, interval: float, once: bool) -> int:
    """Show queues, throughput, workers and the newest failures, live. Press q or Ctrl-C to quit.

    \b
    holdfast top app:hf
    holdfast top sqlite:///work.db --once
    """
    with targets.resolve(target) as hf:
        if once or not sys.stdout.isatty():
            screen.show(frame(collect(hf), height=None))
            return exit_codes.OK
        with contextlib.suppress(KeyboardInterrupt):
            _watch(hf, interval)
        return exit_codes.OK


def _watch(hf: Holdfast, interval: float) -> None:
    console = screen.stdout()
    with _keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(_frame(hf, console.height), refresh=True)
            if pressed(interval) in ("q", "Q", "\x03", "\x04"):
                return


def _frame(hf: Holdfast, height: int) -> RenderableType:
    """Return the current frame, or an error message while the database or server can't be reached."""
    try:
        return frame(collect(hf), height=height)
    except (StoreUnavailable, StoreBusy, ServerUnavailable) as error:
        return unreachable(str(error))


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """Yield a function that waits up to `seconds` for a key press and returns the key, or an empty text.

    If stdin is not a terminal, the function only waits.
    """
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
    # A closed terminal always reads as empty: treat it like Ctrl-D.
    return (os.read(ready[0], 1).decode("utf-8", "replace") or "\x04") if ready else ""


@dataclass(frozen=True, kw_only=True)
class FrameData:
    """The data of one frame; reading it takes the same time however many runs have finished."""

    overview: Overview
    workers: Sequence[WorkerInfo]
    active_runs: Mapping[str, Sequence[ActiveRun]]
    failures: Sequence[Snapshot]


def collect(hf: Holdfast) -> FrameData:
    """Read the data of one frame."""
    failed = [run for state in ("failed", "timed_out") for run in hf.search(RunFilter(state=state), limit=NEWEST).items]
    return FrameData(
        overview=hf.statistics.overview(),
        workers=hf.workers.list(),
        active_runs=by_worker(hf.workers.active_runs()),
        failures=sorted(failed, key=lambda run: run.finished_at or run.created_at, reverse=True)[:NEWEST],
    )


def frame(data: FrameData, *, height: int | None) -> RenderableType:
    """Lay out the data for a screen of `height` lines; each table shows as many rows as fit."""
    room = None if height is None else max(2, (height - SPARE_LINES - len(data.failures)) // 2)
    parts: list[RenderableType] = [_headline(data.overview), _throughput(data.overview), Text()]
    rows = [queues.row(queue, data.overview.at, data.workers) for queue in data.overview.queues]
    parts += _table(
        "no queued or running runs", queues.COLUMNS, rows, room, spare=("MAX QUEUED", "CONCURRENCY", *queues.SPARE)
    )
    workers = [_worker(worker, data) for worker in data.workers]
    parts += _table("no live workers", WORKERS, workers, room, spare=("QUEUES", "LAST SEEN"))
    parts += _table("no failures", FAILURES, [_failure(run) for run in data.failures], None, spare=("JOB",))
    return Group(*parts[:-1])


def unreachable(message: str) -> RenderableType:
    """Return the message that is shown while the database or server can't be reached."""
    return Text(f"can't read the database, trying again: {plain(message)}", style="red")


def _headline(overview: Overview) -> Text:
    more = "+" if overview.more else ""
    workers = overview.workers
    line = Text(f"{overview.at:%H:%M:%S} UTC   ", style="bold")
    line.append(f"{overview.queued:,}{more} queued   {overview.running:,} running of {overview.capacity:,}   ")
    line.append(f"{workers} {'worker' if workers == 1 else 'workers'}", style="" if workers else "red")
    if overview.oldest_waiting is not None:
        line.append(f"   oldest ready: {duration(overview.oldest_waiting)}")
    if overview.paused:
        line.append(f"   paused: {plain(', '.join(overview.paused))}", style="yellow")
    return line


def _throughput(overview: Overview) -> Text:
    pace = overview.pace
    rate = "" if pace.success_rate is None else f"   {pace.success_rate:.0%} succeeded"
    line = Text(f"{pace.per_second:.1f} runs/s{rate}", style="")
    return line.append(f"   waited {_times(pace.waited)}   ran {_times(pace.ran)}", style="dim")


def _times(times: Times) -> str:
    percentiles = ((50, times.p50), (95, times.p95), (99, times.p99))
    return " ".join(f"p{name} {duration(value)}" for name, value in percentiles if value is not None) or "-"


def _table(
    empty: str, columns: Sequence[str], rows: list[tuple[str | Text, ...]], room: int | None, *, spare: Sequence[str]
) -> list[RenderableType]:
    if not rows:
        return [Text(empty, style="dim"), Text()]
    shown = rows if room is None or len(rows) <= room else rows[: room - 1]
    more = [Text(f"and {len(rows) - len(shown)} more", style="dim")] if len(shown) < len(rows) else []
    return [screen.table(columns, shown, spare=spare), *more, Text()]


def _worker(worker: WorkerInfo, data: FrameData) -> tuple[str | Text, ...]:
    active_runs = data.active_runs.get(worker.id, ())
    running = ", ".join(f"{run.job} {duration(data.overview.at - run.started_at)}" for run in active_runs)
    return (
        plain(worker.id),
        f"{len(active_runs)} of {worker.concurrency}",
        f"{duration(data.overview.at - worker.last_seen_at)} ago",
        plain(", ".join(worker.queues)),
        ending(worker, running),
    )


def _failure(run: Snapshot) -> tuple[str | Text, ...]:
    error = last_line(run.error or run.failure_type or "")
    at = "" if run.finished_at is None else f"{run.finished_at:%H:%M:%S}"
    return at, plain(run.id), plain(run.job), Text(plain(error[:500]), style="red")
