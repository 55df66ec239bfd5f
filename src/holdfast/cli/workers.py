"""holdfast workers: who is alive, what each does now, and how one is asked to end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click
from rich.text import Text

from holdfast.cli import completion, exit_codes, json_output, parameters, screen, targets
from holdfast.runs.workers import by_worker
from holdfast.support.text import duration, plain
from holdfast.values.pages import Page
from holdfast.values.workers import Task, WorkerInfo

COLUMNS = ("WORKER", "HOST", "PID", "VERSION", "HEARD", "BUSY", "QUEUES", "DOES")
SPARE = ("VERSION", "PID", "HOST", "QUEUES")
FEW = 3


@click.group()
def workers() -> None:
    """Look at workers, and ask one to end.

    \b
    holdfast workers list app:hf
    holdfast workers drain app:hf box:4711:worker:9k2x…
    """


@workers.command("list")
@parameters.target_argument()
@parameters.json_option
def list_(target: str, as_json: bool) -> int:
    """Every live worker: when it was last heard, how many of its places are busy, and with what.

    \b
    holdfast workers list app:hf
    holdfast workers list app:hf --json | jq '.items[] | select(.drain_at)'
    """
    with targets.either(target) as hf:
        found, tasks = hf.workers.list(), by_worker(hf.workers.tasks())
        rows = [_row(one, tasks.get(one.id, ()), hf.clock.now()) for one in found]
        screen.listing(
            Page.whole(found),
            as_json=as_json,
            shape=lambda one: json_output.worker(one, tasks.get(one.id, ())),
            table=lambda: screen.table(COLUMNS, rows, spare=SPARE),
            nothing="no worker is alive: 'holdfast worker app:hf' starts one",
        )
        return exit_codes.OK


@workers.command(short_help="Ask one to finish and end.")
@parameters.target_argument()
@click.argument("worker_id", metavar="WORKER", shell_complete=completion.workers)
@parameters.json_option
def drain(target: str, worker_id: str, as_json: bool) -> int:
    """Ask a live worker to claim no more, finish what it has however long that takes, and end with exit code 0.

    It hears of it within a tick. SIGTERM is for when there is no time: then unfinished work is handed back.

    \b
    holdfast workers drain app:hf box:4711:worker:9k2x…
    """
    with targets.either(target) as hf:
        worker = hf.workers.drain(worker_id, **targets.signed(hf))
        tasks = by_worker(hf.workers.tasks()).get(worker.id, ())
        if as_json:
            screen.document(json_output.worker(worker, tasks))
        else:
            screen.show(f"{plain(worker.id)} drains: {len(tasks)} running, then it ends")
        return exit_codes.OK


def ending(worker: WorkerInfo, does: str) -> Text:
    """What a worker does, and first whether it is about to end."""
    ends = "" if worker.claims else "drains" if worker.drain_at else "stops"
    return Text(plain("; ".join(part for part in (ends, does) if part)), style="yellow" if ends else "")


def _row(worker: WorkerInfo, tasks: Sequence[Task], now: datetime) -> tuple[str | Text, ...]:
    does = ", ".join(f"{task.job} {task.run_id}" for task in tasks[:FEW]) + (" …" if len(tasks) > FEW else "")
    return (
        plain(worker.id),
        plain(worker.host),
        str(worker.pid),
        plain(worker.version),
        f"{duration(now - worker.seen_at)} ago",
        f"{len(tasks)} of {worker.concurrency}",
        plain(", ".join(worker.queues)),
        ending(worker, does),
    )
