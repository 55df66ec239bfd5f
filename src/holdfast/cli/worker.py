"""holdfast worker and holdfast orchestrator. The first signal stops the process gracefully, the second at once."""

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

SAME_SIGNAL = 2.0  # seconds: signals closer together than this count as one
LEVELS = ("debug", "info", "warning", "error")

wait_option = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=60,
    show_default=True,
    help="How long to wait at start for a database that is not reachable yet.",
)


@click.command()
@parameters.target_argument("app")
@click.option(
    "-q",
    "--queues",
    shell_complete=completion.queues,
    help="Queues to claim from, comma-separated.  [default: the setting `queues`, or `default` and the build queues]",
)
@click.option(
    "-c",
    "--concurrency",
    type=click.IntRange(1, 10_000),
    help="How many runs to execute at once.  [default: the setting `concurrency`, or 8]",
)
@click.option("--exclusive", metavar="NAME", help="Start only if no live worker has this name.")
@click.option("--drain", is_flag=True, help="Stop when no run is left to execute.")
@click.option("--no-orchestrator", is_flag=True, help="Only execute runs; leave orchestration to other processes.")
@wait_option
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="Log level on stderr.")
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
    """Start a worker that executes queued runs.

    APP is an application, written as module:attribute or path/app.py:attribute.

    On SIGTERM or Ctrl-C the worker stops claiming and gives its runs `shutdown_grace` to finish. If all of them finish,
    it exits with code 0; otherwise it releases the rest and exits with code 4. A second signal, at least 2 s later,
    stops it at once (exit code 5), and other workers take over its runs when the leases expire.

    \b
    holdfast worker app:hf
    holdfast worker app:hf -q mail,default -c 16
    holdfast worker app:hf --exclusive nightly
    holdfast worker app:hf --drain               empty the queues, then stop
    holdfast worker app:hf --no-orchestrator     only execute runs; see `holdfast orchestrator`
    """
    names = None if queues is None else [name.strip() for name in queues.split(",") if name.strip()]
    if names == []:
        raise click.BadParameter("name at least one queue", param_hint="--queues")
    with targets.application(app) as hf:
        log_to_stderr(log_level, kept=hf.settings.run_log_level)
        role: Role = "worker" if no_orchestrator else "both"
        working = hf.worker(queues=names, concurrency=concurrency, exclusive=exclusive, drain=drain, role=role)
        working.restart = _restart if "worker" in sys.orig_argv else None
        return _work(hf, working, wait=wait)


@click.command()
@parameters.target_argument("app")
@wait_option
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True, help="Log level on stderr.")
def orchestrator(app: str, wait: float, log_level: str) -> int:
    """Promote, recover and schedule runs without executing any.

    Every worker does this too, unless it was started with --no-orchestrator. APP must be the application of the
    workers, because schedules are part of its code. You can run several orchestrators. SIGTERM or Ctrl-C stops one.

    \b
    holdfast orchestrator app:hf
    """
    with targets.application(app) as hf:
        log_to_stderr(log_level, kept=hf.settings.run_log_level)
        return _work(hf, hf.worker(role="orchestrator"), wait=wait)


def _work(hf: Holdfast, working: Worker, *, wait: float) -> int:
    stop = Signals()
    stop.listen()
    if not start_when_reachable(working.start, hf, stop, wait=wait):
        return exit_codes.OK
    _announce(hf, working)
    while working.alive and not stop.requested.wait(0.2):
        pass
    if not working.alive:
        working.join()
        ended = "drained on request" if working.drained else "no runs left"
        screen.note(f"{ended}; made {working.claimed} attempt{'' if working.claimed == 1 else 's'}")
        return exit_codes.OK
    grace = duration(hf.settings.shutdown_grace)
    count = len(working.in_flight)
    screen.note(
        f"stopping: {count} run{'' if count == 1 else 's'} in progress, up to {grace} to finish; "
        "signal again to stop at once"
    )
    return report_stop(working)


def report_stop(working: Worker) -> int:
    """Stop the worker, say whether it released unfinished runs, and return the exit code."""
    if working.stop() == "released":
        screen.note("stopped; unfinished runs were released and no attempt was used up")
        return exit_codes.RELEASED
    screen.note("stopped; all runs had finished")
    return exit_codes.OK


def _restart() -> None:
    """Replace this process with a new worker under the same process id; all its threads end at once."""
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _announce(hf: Holdfast, working: Worker) -> None:
    jobs = hf.jobs.names()
    location = targets.location(hf)
    if not working.claims:
        screen.note(f"orchestrator {working.id} started on {location}; it executes no runs")
        return
    screen.note(
        f"worker {working.id} started on {location}; queues: {', '.join(working.queues)}; "
        f"concurrency: {working.concurrency}; jobs: {', '.join(jobs) or 'none'}"
    )
    if not jobs:
        screen.note("warning: this application has no jobs; is the module that defines them imported?", style="yellow")


def start_when_reachable(start: Callable[[], object], hf: Holdfast, stop: Signals, *, wait: float) -> bool:
    """Call `start`, waiting up to `wait` seconds for the database; return False if a signal comes first."""
    started = outages.outlast(start, wait=timedelta(seconds=wait), clock=hf.clock, stopping=stop.requested)
    if not started:
        screen.note("stopped before the database could be reached")
    return started


class Signals:
    """Handles SIGTERM and SIGINT: the first requests a stop, the second ends the process at once.

    A container runtime or a shell may signal both the process and its group, so signals close together count as one.
    """

    def __init__(self) -> None:
        self.requested = threading.Event()
        self._requested_at = 0.0

    def listen(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested.is_set() and time.monotonic() - self._requested_at < SAME_SIGNAL:
            return
        if self.requested.is_set():
            # Use no buffers and no locks: the process must end whatever its threads are doing.
            os.write(2, b"stopped at once; other workers take over when the leases expire\n")
            os._exit(exit_codes.STOPPED)
        self._requested_at = time.monotonic()
        self.requested.set()


def log_to_stderr(level: str, *, kept: str) -> None:
    """Log to stderr at `level`. The root logger also passes records at `kept`, the level from which runs store them."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(level.upper())
    handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(min(logging.getLevelNamesMapping()[name.upper()] for name in (level, kept)))


class PlainFormatter(logging.Formatter):
    """Formats log lines without control characters, so that no message can control the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return plain(super().format(record), lines=True)
