"""holdfast queues: list, pause, resume and limit queues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click
from rich.table import Table
from rich.text import Text

from holdfast.app import Holdfast
from holdfast.cli import completion, exit_codes, parameters, screen, targets
from holdfast.support.text import duration, plain
from holdfast.values.pages import Page
from holdfast.values.queues import EVERY_QUEUE, UNSET, Queue, Unset
from holdfast.values.workers import WorkerInfo, why_unserved

COLUMNS = ("QUEUE", "QUEUED", "READY", "RUNNING", "MAX QUEUED", "CONCURRENCY", "OLDEST", "REFUSED", "NOTE")
SPARE = ("REFUSED", "OLDEST", "READY")


def _number(ctx: click.Context, param: click.Parameter, value: str | None) -> int | Unset | None:
    """Parse a whole number, or 'none' for no limit."""
    if value is None or value == "none":
        return UNSET if value is None else None
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a whole number nor 'none'", ctx, param) from None


@click.group()
def queues() -> None:
    """List, pause, resume and limit queues.

    \b
    holdfast queues list app:hf
    holdfast queues pause app:hf mail --note "the provider is down"
    holdfast queues limit app:hf mail --max-queued 100 --concurrency 4
    """


@queues.command("list")
@parameters.target_argument()
@parameters.json_option
def list_(target: str, as_json: bool) -> int:
    """List queues with their limits and numbers of runs.

    A queue is listed if it has unfinished runs, a limit, a pause, a refused submission or a live worker. '*' stands
    for all queues together. QUEUED counts all queued runs, READY those that can start now. MAX QUEUED shows the number
    of unfinished runs and the limit ("3 of 100"). CONCURRENCY is how many runs may run at once. OLDEST is the age of
    the oldest queued run. REFUSED counts submissions that were refused because the queue was full.

    \b
    holdfast queues list app:hf
    """
    with targets.resolve(target) as hf:
        found = hf.queues.list()

        def table() -> Table:
            alive = hf.workers.list()
            return screen.table(COLUMNS, [row(queue, hf.clock.now(), alive) for queue in found], spare=SPARE)

        empty = "no queues yet: no runs, no limits and no live workers"
        screen.listing(Page.whole(found), as_json=as_json, table=table, empty=empty)
        return exit_codes.OK


@queues.command(short_help="Stop starting runs of a queue.")
@parameters.target_argument()
@click.argument("name", metavar="QUEUE", shell_complete=completion.queues)
@click.option("--note", help="The reason, shown by 'queues list' and 'runs why'.")
@parameters.json_option
def pause(target: str, name: str, note: str | None, as_json: bool) -> int:
    """Stop starting runs of a queue, in every worker. Running runs continue, and new ones can be submitted.

    \b
    holdfast queues pause app:hf mail --note "the provider is down"
    """
    with targets.resolve(target) as hf:
        hf.queues.pause(name, note=note, **targets.audit_fields(hf))
        return _answer(hf, name, "{name} is paused", as_json=as_json)


@queues.command(short_help="Resume a paused queue.")
@parameters.target_argument()
@click.argument("name", metavar="QUEUE", shell_complete=completion.queues)
@parameters.json_option
def resume(target: str, name: str, as_json: bool) -> int:
    """Resume a paused queue.

    \b
    holdfast queues resume app:hf mail
    """
    with targets.resolve(target) as hf:
        hf.queues.resume(name, **targets.audit_fields(hf))
        return _answer(hf, name, "{name} is resumed", as_json=as_json)


@queues.command(short_help="Set or remove the limits of a queue.")
@parameters.target_argument()
@click.argument("name", metavar="QUEUE", shell_complete=completion.queues)
@click.option("--max-queued", metavar="N|none", callback=_number, help="How many runs may be queued or running.")
@click.option(
    "--concurrency", metavar="N|none", callback=_number, help="How many runs may run at once, over all workers."
)
@parameters.json_option
def limit(
    target: str, name: str, max_queued: int | Unset | None, concurrency: int | Unset | None, as_json: bool
) -> int:
    """Set or remove the limits of a queue. They apply to every process at once; '*' stands for all queues together.

    Limits set here stay until the code declares new ones with hf.queue(…).

    \b
    holdfast queues limit app:hf mail --max-queued 100 --concurrency 4
    holdfast queues limit app:hf mail --max-queued none
    """
    if max_queued is UNSET and concurrency is UNSET:
        raise click.UsageError("give --max-queued, --concurrency or both")
    with targets.resolve(target) as hf:
        hf.queues.limit(name, max_queued=max_queued, concurrency=concurrency, **targets.audit_fields(hf))
        return _answer(hf, name, "{name}: {counted} queued or running, {running} at once", as_json=as_json)


def _answer(hf: Holdfast, name: str, sentence: str, *, as_json: bool) -> int:
    """Print the queue's new status, and a warning if nothing uses it, because its name may be misspelt."""
    queue = hf.queues.get(name)
    if as_json:
        screen.document(queue)
    else:
        counted, running = _bound(queue.max_queued), _bound(queue.concurrency)
        screen.show(sentence.format(name=plain(name), counted=counted, running=running))
    used = {EVERY_QUEUE} | {hf.jobs[job].options.queue for job in hf.jobs}
    if name not in used and queue.queued + queue.running == 0:
        jobs = "no job of this application uses it and " if hf.jobs.names() else ""
        screen.note(f"warning: queue {name}: {jobs}it has no runs; is the name correct?", style="yellow")
    return exit_codes.OK


def _bound(limit: int | None) -> str:
    return "any number" if limit is None else f"at most {limit}"


def row(queue: Queue, now: datetime, alive: Sequence[WorkerInfo]) -> tuple[str | Text, ...]:
    """Return the table row of a queue; `alive` are the live workers."""
    note = (why_unserved(alive, queue.name) or "") if queue.ready else ""
    if queue.paused_at is not None:
        note = f"paused since {screen.instant(queue.paused_at)}" + (f": {queue.note}" if queue.note else "")
    more = "+" if queue.more else ""
    full = queue.max_queued is not None and queue.capacity_used >= queue.max_queued
    return (
        plain(queue.name),
        f"{queue.queued:,}{more}",
        f"{queue.ready:,}{more}",
        f"{queue.running:,}",
        Text(
            "" if queue.max_queued is None else f"{queue.capacity_used} of {queue.max_queued}",
            style="red" if full else "",
        ),
        "" if queue.concurrency is None else str(queue.concurrency),
        "" if queue.oldest_at is None else duration(now - queue.oldest_at),
        f"{queue.rejected:,}" if queue.rejected else "",
        Text(plain(note), style="yellow"),
    )
