"""holdfast worker: claims and runs until told to stop. The first signal drains, the second stops at once."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from types import FrameType

import click

from holdfast.app import Holdfast
from holdfast.cli import completion, exit_codes, parameters, screen, targets
from holdfast.store import outages
from holdfast.support.text import duration, plain
from holdfast.worker.worker import Role, Worker

TOGETHER = 2.0  # seconds: signals closer than this count as one
LEVELS = ("debug", "info", "warning", "error")

wait_option = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=60,
    show_default=True,
    help="How long to wait for a database that restarts or is not up yet.",
)


@click.command()
@parameters.target_argument("app")
@click.option(
    "-q",
    "--queues",
    shell_complete=completion.queues,
    help="Queues to serve, comma-separated.  [default: the setting; else default and what builds use]",
)
@click.option("-c", "--concurrency", type=click.IntRange(1, 10_000), help="Runs at once.  [default: the setting, 8]")
@click.option("--exclusive", metavar="NAME", help="A name that only one live worker may have.")
@click.option("--drain", is_flag=True, help="Stop when there is nothing left to do.")
@click.option("--no-orchestrator", is_flag=True, help="Leave what waits and what was lost to other processes.")
@wait_option
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="What stderr shows.")
def worker(
    app: str,
    queues: str | None,
    concurrency: int | None,
    exclusive: str | None,
    drain: bool,
    no_orchestrator: bool,
    wait: float,
    log_level: str,
) -> int:
    """Run what is queued.

    APP is module:attribute (or path/app.py:attribute). SIGTERM or Ctrl-C: claim no more, let running work finish
    within `shutdown_grace`, hand back the rest (exit 4, or 0 if nothing was left). A second signal, at least 2 s later,
    stops at once (exit 5); other workers take over when the leases run out.

    \b
    holdfast worker app:hf
    holdfast worker app:hf -q mail,default -c 16
    holdfast worker app:hf --exclusive nightly
    holdfast worker app:hf --drain               work off the queue, then stop
    holdfast worker app:hf --no-orchestrator     only claim and complete; see `holdfast orchestrator`
    """
    names = None if queues is None else [name.strip() for name in queues.split(",") if name.strip()]
    if names == []:
        raise click.BadParameter("name at least one queue", param_hint="--queues")
    with targets.application(app) as hf:
        log_to_stderr(log_level, kept=hf.settings.log_level)
        role: Role = "worker" if no_orchestrator else "both"
        working = hf.worker(queues=names, concurrency=concurrency, exclusive=exclusive, drain=drain, role=role)
        working.restart = _restart if "worker" in sys.orig_argv else None
        return _work(hf, working, wait=wait)


@click.command()
@parameters.target_argument("app")
@wait_option
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="What stderr shows.")
def orchestrator(app: str, wait: float, log_level: str) -> int:
    """Move what waits and take over what was lost, and run nothing.

    Every worker does that, too, unless it is started with --no-orchestrator. Schedules need the application's code, so
    APP is the one that the workers have. Any number may run. SIGTERM or Ctrl-C stops it.

    \b
    holdfast orchestrator app:hf
    """
    with targets.application(app) as hf:
        log_to_stderr(log_level, kept=hf.settings.log_level)
        return _work(hf, hf.worker(role="orchestrator"), wait=wait)


def _work(hf: Holdfast, working: Worker, *, wait: float) -> int:
    stop = Signals()
    stop.listen()
    if not outlasts(working.start, hf, stop, wait=wait):
        return exit_codes.OK
    _announce(hf, working)
    while working.alive and not stop.asked.wait(0.2):
        pass
    if not working.alive:
        working.join()
        ended = "drained, as it was asked to" if working.drained else "nothing left to do"
        screen.note(f"{ended}; {working.claimed} attempts were made")
        return exit_codes.OK
    grace = duration(hf.settings.shutdown_grace)
    screen.note(f"stopping: {len(working.in_flight)} running, {grace} to finish; signal again to stop at once")
    if working.stop() == "released":
        screen.note("stopped; unfinished work was handed back, no attempt was used up")
        return exit_codes.HANDED_BACK
    screen.note("stopped; nothing was left unfinished")
    return exit_codes.OK


def _restart() -> None:
    """Become a new worker with the same process id: every thread of this one is gone at once."""
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _announce(hf: Holdfast, working: Worker) -> None:
    jobs = hf.jobs.names()
    place = targets.place(hf)
    if not working.claims:
        screen.note(f"orchestrator {working.id} serves {place}; it runs nothing itself")
        return
    screen.note(
        f"worker {working.id} serves {', '.join(working.queues)} with {working.concurrency} places on {place}; "
        f"jobs: {', '.join(jobs) or 'none'}"
    )
    if not jobs:
        screen.note("warning: this application has no jobs; is the module that defines them imported?", style="yellow")


def outlasts(start: Callable[[], object], hf: Holdfast, stop: Signals, *, wait: float) -> bool:
    """Start, and wait so long for the database; False if a signal came first."""
    started = outages.outlast(start, wait=timedelta(seconds=wait), clock=hf.clock, stopping=stop.asked)
    if not started:
        screen.note("stopped before the database answered")
    return started


class Signals:
    """The first SIGTERM or SIGINT asks, the second ends the process there and then.

    A container runtime or a shell may signal the process and its group, so signals that come together count as one.
    """

    def __init__(self) -> None:
        self.asked = threading.Event()
        self._asked_at = 0.0

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._heard)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.asked.is_set() and time.monotonic() - self._asked_at < TOGETHER:
            return
        if self.asked.is_set():
            # No buffers, no locks: whatever the process is in the middle of, it ends.
            os.write(2, b"stopped at once; the leases run out and others take over\n")
            os._exit(exit_codes.STOPPED)
        self._asked_at = time.monotonic()
        self.asked.set()


def log_to_stderr(level: str, *, kept: str) -> None:
    """What stderr shows is one thing, what is kept with a run another: the root lets through what either wants."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level.upper())
    handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(min(logging.getLevelNamesMapping()[name.upper()] for name in (level, kept)))


class PlainFormatter(logging.Formatter):
    """Log lines in which no message can steer the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return plain(super().format(record), lines=True)
