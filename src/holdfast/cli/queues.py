"""holdfast queues: what they have, whether they are paused, how far they may fill."""

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

COLUMNS = ("QUEUE", "QUEUED", "READY", "RUNNING", "LIMIT", "AT ONCE", "OLDEST", "REFUSED", "NOTE")
SPARE = ("REFUSED", "OLDEST", "READY")


def _number(ctx: click.Context, param: click.Parameter, value: str | None) -> int | Unset | None:
    """A whole number, or 'none'."""
    if value is None or value == "none":
        return UNSET if value is None else None
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a whole number nor 'none'", ctx, param) from None


@click.group()
def queues() -> None:
    """Look at queues, pause and limit them.

    \b
    holdfast queues list app:hf
    holdfast queues pause app:hf mail --note "the provider is down"
    holdfast queues limit app:hf runs --max-queued 100 --concurrency 4
    """


@queues.command("list")
@parameters.target_argument()
@parameters.json_option
def list_(target: str, as_json: bool) -> int:
    """Every queue that a live worker serves, or that has a run, a pause, a limit or a refusal; '*' is all of them
    together.

    QUEUED waits or is READY; LIMIT is how many of the runs that may be queued or running there are, AT ONCE how many
    may run; OLDEST is how long the oldest that is queued has been there; REFUSED how many submissions met a full queue.

    \b
    holdfast queues list app:hf
    """
    with targets.either(target) as hf:
        found = hf.queues.list()

        def table() -> Table:
            alive = hf.workers.list()
            return screen.table(COLUMNS, [row(queue, hf.clock.now(), alive) for queue in found], spare=SPARE)

        nothing = "no queues yet: nothing waits or runs, nothing is limited"
        screen.listing(Page.whole(found), as_json=as_json, table=table, nothing=nothing)
        return exit_codes.OK


@queues.command(short_help="Let nothing of a queue start.")
@parameters.target_argument()
@click.argument("name", metavar="QUEUE", shell_complete=completion.queues)
@click.option("--note", help="Why; 'queues list' and 'runs why' show it.")
@parameters.json_option
def pause(target: str, name: str, note: str | None, as_json: bool) -> int:
    """Let nothing of a queue start, in any worker; what runs goes on.

    \b
    holdfast queues pause app:hf mail --note "the provider is down"
    """
    with targets.either(target) as hf:
        hf.queues.pause(name, note=note, **targets.signed(hf))
        return _answer(hf, name, "{name} is paused", as_json=as_json)


@queues.command(short_help="Let a paused queue go on.")
@parameters.target_argument()
@click.argument("name", metavar="QUEUE", shell_complete=completion.queues)
@parameters.json_option
def resume(target: str, name: str, as_json: bool) -> int:
    """Let a paused queue go on.

    \b
    holdfast queues resume app:hf mail
    """
    with targets.either(target) as hf:
        hf.queues.resume(name, **targets.signed(hf))
        return _answer(hf, name, "{name} goes on", as_json=as_json)


@queues.command(short_help="Set or lift the limits of a queue.")
@parameters.target_argument()
@click.argument("name", metavar="QUEUE", shell_complete=completion.queues)
@click.option("--max-queued", metavar="N|none", callback=_number, help="Runs that may be queued or running.")
@click.option("--concurrency", metavar="N|none", callback=_number, help="Runs at once, over all workers.")
@parameters.json_option
def limit(
    target: str, name: str, max_queued: int | Unset | None, concurrency: int | Unset | None, as_json: bool
) -> int:
    """Set or lift the limits of a queue, for every process, at once; '*' is all queues together.

    It stands until the code says something new by hf.queue(…).

    \b
    holdfast queues limit app:hf runs --max-queued 100 --concurrency 4
    holdfast queues limit app:hf runs --max-queued none
    """
    if max_queued is UNSET and concurrency is UNSET:
        raise click.UsageError("say --max-queued, --concurrency, or both")
    with targets.either(target) as hf:
        hf.queues.limit(name, max_queued=max_queued, concurrency=concurrency, **targets.signed(hf))
        return _answer(hf, name, "{name}: {counted} queued or running, {running} at once", as_json=as_json)


def _answer(hf: Holdfast, name: str, sentence: str, *, as_json: bool) -> int:
    """How the queue stands now; and a warning if nothing is known to use it, as its name may be misspelt."""
    queue = hf.queues.get(name)
    if as_json:
        screen.document(queue)
    else:
        counted, running = _bound(queue.max_queued), _bound(queue.concurrency)
        screen.show(sentence.format(name=plain(name), counted=counted, running=running))
    used = {EVERY_QUEUE} | {hf.jobs[job].options.queue for job in hf.jobs}
    if name not in used and queue.queued + queue.running == 0:
        by = "no job of this application uses it, and " if hf.jobs.names() else ""
        screen.note(f"warning: queue {name}: {by}no run is in it now; is that its name?", style="yellow")
    return exit_codes.OK


def _bound(limit: int | None) -> str:
    return "any number" if limit is None else f"at most {limit}"


def row(queue: Queue, now: datetime, alive: Sequence[WorkerInfo]) -> tuple[str | Text, ...]:
    """A queue in a table of these columns; `alive` are the workers that may serve it."""
    note = (why_unserved(alive, queue.name) or "") if queue.ready else ""
    if queue.paused_at is not None:
        note = f"paused since {screen.instant(queue.paused_at)}" + (f": {queue.note}" if queue.note else "")
    more = "+" if queue.more else ""
    full = queue.max_queued is not None and queue.seats >= queue.max_queued
    return (
        plain(queue.name),
        f"{queue.queued:,}{more}",
        f"{queue.ready:,}{more}",
        f"{queue.running:,}",
        Text("" if queue.max_queued is None else f"{queue.seats} of {queue.max_queued}", style="red" if full else ""),
        "" if queue.concurrency is None else str(queue.concurrency),
        "" if queue.oldest_at is None else duration(now - queue.oldest_at),
        f"{queue.rejected:,}" if queue.rejected else "",
        Text(plain(note), style="yellow"),
    )
