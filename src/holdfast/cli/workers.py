"""holdfast workers: list live workers and what they run, and drain one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click
from rich.text import Text

from holdfast.cli import completion, exit_codes, json_output, parameters, screen, targets
from holdfast.runs.workers import by_worker
from holdfast.support.text import duration, plain
from holdfast.values.pages import Page
from holdfast.values.workers import ActiveRun, WorkerInfo

COLUMNS = ("WORKER", "HOST", "PID", "VERSION", "LAST SEEN", "BUSY", "QUEUES", "RUNNING")
SPARE = ("VERSION", "PID", "HOST", "QUEUES")
FEW = 3


@click.group()
def workers() -> None:
    """List live workers, and drain one.

    \b
    holdfast workers list app:hf
    holdfast workers drain app:hf box:4711:worker:9k2x…
    """


@workers.command("list")
@parameters.target_argument()
@parameters.json_option
def list_(target: str, as_json: bool) -> int:
    """List live workers. BUSY is how many runs a worker executes, and how many it can execute at once ("2 of 8").

    \b
    holdfast workers list app:hf
    holdfast workers list app:hf --json | jq '.items[] | select(.drain_requested_at)'
    """
    with targets.resolve(target) as hf:
        found, tasks = hf.workers.list(), by_worker(hf.workers.active_runs())
        rows = [_row(one, tasks.get(one.id, ()), hf.clock.now()) for one in found]
        screen.listing(
            Page.whole(found),
            as_json=as_json,
            shape=lambda one: json_output.worker(one, tasks.get(one.id, ())),
            table=lambda: screen.table(COLUMNS, rows, spare=SPARE),
            empty="no live workers: start one with 'holdfast worker app:hf'",
        )
        return exit_codes.OK


@workers.command(short_help="Let a worker finish its runs and exit.")
@parameters.target_argument()
@click.argument("worker_id", metavar="WORKER", shell_complete=completion.workers)
@parameters.json_option
def drain(target: str, worker_id: str, as_json: bool) -> int:
    """Let a worker finish its runs, however long that takes, and exit with code 0. It claims no new runs.

    The worker notices within its poll interval. To stop it sooner, send SIGTERM: it then releases unfinished runs after
    `shutdown_grace`.

    \b
    holdfast workers drain app:hf box:4711:worker:9k2x…
    """
    with targets.resolve(target) as hf:
        worker = hf.workers.drain(worker_id, **targets.audit_fields(hf))
        tasks = by_worker(hf.workers.active_runs()).get(worker.id, ())
        if as_json:
            screen.document(json_output.worker(worker, tasks))
        else:
            count = len(tasks)
            then = f"after its {count} run{'' if count == 1 else 's'}" if count else "now"
            screen.show(f"{plain(worker.id)} is draining: it exits {then}")
        return exit_codes.OK


def ending(worker: WorkerInfo, running: str) -> Text:
    """Return what a worker runs, preceded by `draining` or `stopping` if it is about to exit."""
    ends = "" if worker.claims else "draining" if worker.drain_requested_at else "stopping"
    return Text(plain("; ".join(part for part in (ends, running) if part)), style="yellow" if ends else "")


def _row(worker: WorkerInfo, tasks: Sequence[ActiveRun], now: datetime) -> tuple[str | Text, ...]:
    running = ", ".join(f"{task.job} {task.run_id}" for task in tasks[:FEW]) + (" …" if len(tasks) > FEW else "")
    return (
        plain(worker.id),
        plain(worker.host),
        str(worker.pid),
        plain(worker.version),
        f"{duration(now - worker.last_seen_at)} ago",
        f"{len(tasks)} of {worker.concurrency}",
        plain(", ".join(worker.queues)),
        ending(worker, running),
    )
