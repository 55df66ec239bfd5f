"""Frames: what `holdfast top` shows at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rich.console import Group, RenderableType
from rich.text import Text

from holdfast.app import Holdfast
from holdfast.cli import screen
from holdfast.cli.workers import ending
from holdfast.runs.workers import by_worker
from holdfast.values.filters import RunFilter
from holdfast.values.queues import Queue
from holdfast.values.runs import Snapshot, last_line
from holdfast.values.statistics import Overview, Times
from holdfast.values.workers import Task, WorkerInfo

QUEUES = ("QUEUE", "WAITING", "READY", "RUNNING", "LIMIT", "AT ONCE", "OLDEST", "REFUSED", "NOTE")
WORKERS = ("WORKER", "BUSY", "HEARD", "QUEUES", "DOES")
FAILURES = ("FAILED AT", "ID", "JOB", "ERROR")
NEWEST = 5
SPARE_LINES = 12  # what a frame has besides the rows of its tables


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
    rows = [_queue(queue, moment.overview.at) for queue in moment.overview.queues]
    parts += _table("no queue has anything", QUEUES, rows, room, spare=("LIMIT", "AT ONCE", "REFUSED", "OLDEST"))
    workers = [_worker(worker, moment) for worker in moment.workers]
    parts += _table("no worker is alive", WORKERS, workers, room, spare=("QUEUES", "HEARD"))
    parts += _table("nothing failed", FAILURES, [_failure(run) for run in moment.failures], None, spare=("JOB",))
    return Group(*parts[:-1])


def trouble(message: str) -> RenderableType:
    """What is shown while the database can't be asked."""
    return Text(f"the database can't be asked: {screen.plain(message)}", style="red")


def _headline(seen: Overview) -> Text:
    more = "+" if seen.more else ""
    line = Text(f"{seen.at:%H:%M:%S} UTC   ", style="bold")
    line.append(f"{seen.queued:,}{more} queued   {seen.running:,} running of {seen.capacity:,}   ")
    line.append(f"{seen.workers} {'worker' if seen.workers == 1 else 'workers'}", style="" if seen.workers else "red")
    if seen.oldest_waiting is not None:
        line.append(f"   oldest ready: {screen.duration(seen.oldest_waiting)}")
    if seen.paused:
        line.append(f"   paused: {screen.plain(', '.join(seen.paused))}", style="yellow")
    return line


def _pace(seen: Overview) -> Text:
    pace = seen.pace
    rate = "" if pace.success_rate is None else f"   {pace.success_rate:.0%} succeeded"
    line = Text(f"{pace.per_second:.1f} runs/s{rate}", style="")
    return line.append(f"   waited {_times(pace.waited)}   ran {_times(pace.ran)}", style="dim")


def _times(found: Times) -> str:
    told = [f"p{name} {_seconds(value)}" for name, value in ((50, found.p50), (95, found.p95), (99, found.p99))]
    return " ".join(told) if found.count else "-"


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value * 1000:.0f} ms" if value < 1 else screen.duration(timedelta(seconds=value))


def _table(
    nothing: str, columns: Sequence[str], rows: list[tuple[str | Text, ...]], room: int | None, *, spare: Sequence[str]
) -> list[RenderableType]:
    if not rows:
        return [Text(nothing, style="dim"), Text()]
    shown = rows if room is None or len(rows) <= room else rows[: room - 1]
    more = [Text(f"and {len(rows) - len(shown)} more", style="dim")] if len(shown) < len(rows) else []
    return [screen.table(columns, shown, spare=spare), *more, Text()]


def _queue(queue: Queue, now: datetime) -> tuple[str | Text, ...]:
    more = "+" if queue.more else ""
    note = "" if queue.paused_at is None else f"paused{f': {queue.note}' if queue.note else ''}"
    return (
        screen.plain(queue.name),
        f"{queue.waiting:,}{more}",
        f"{queue.ready:,}{more}",
        f"{queue.running:,}",
        "" if queue.max_queued is None else f"{queue.max_queued:,}",
        "" if queue.concurrency is None else f"{queue.concurrency:,}",
        "" if queue.oldest_ready_at is None else screen.duration(now - queue.oldest_ready_at),
        f"{queue.rejected:,}" if queue.rejected else "",
        Text(screen.plain(note), style="yellow"),
    )


def _worker(worker: WorkerInfo, moment: Moment) -> tuple[str | Text, ...]:
    tasks = moment.tasks.get(worker.id, ())
    does = ", ".join(f"{task.job} {screen.duration(moment.overview.at - task.started_at)}" for task in tasks)
    return (
        screen.plain(worker.id),
        f"{len(tasks)} of {worker.concurrency}",
        f"{screen.duration(moment.overview.at - worker.seen_at)} ago",
        screen.plain(", ".join(worker.queues)),
        ending(worker, does),
    )


def _failure(run: Snapshot) -> tuple[str | Text, ...]:
    error = last_line(run.error or run.failure_type or "")
    at = "" if run.finished_at is None else f"{run.finished_at:%H:%M:%S}"
    return at, screen.plain(run.id), screen.plain(run.job), Text(screen.plain(error[:500]), style="red")
