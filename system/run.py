"""Run: starts the applications and shows their status until Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from apps.shared.definition import Application
from rich.console import Console

from holdfast import Holdfast
from system.folder import Folder
from system.process_tree import TOKEN_VARIABLE, ProcessTree, databases
from system.run_counts import RunCounts
from system.screen import Screen
from system.signals import Signals, StopNow

OK, FAILED, STOPPED_NOW = 0, 1, 130
POLL_INTERVAL: Final = 0.25
DATABASE_WAIT: Final = 60  # seconds for a database that is starting


@contextlib.contextmanager
def running_system(
    applications: Sequence[Application], folder: Folder, *, port: int, fresh: bool
) -> Iterator[ProcessTree]:
    """Start all processes; on exit, kill those that still run."""
    folder.acquire(fresh=fresh)
    try:
        for url in databases(applications, folder):
            with Holdfast(url) as hf:
                hf.start(wait=DATABASE_WAIT)  # create the tables before any process needs them
        token = os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(24)
        tree = ProcessTree(applications, folder, token=token, first_port=port)
        try:
            tree.start()
            yield tree
        finally:
            tree.kill()
            tree.close()
    finally:
        folder.release()


def main(applications: Sequence[Application], folder: Folder, *, port: int, fresh: bool) -> int:
    """Start everything, show its status until a stop signal, stop it in order and print a summary."""
    signals, console = Signals(), Console()
    signals.listen()
    try:
        with Screen(console) as screen, running_system(applications, folder, port=port, fresh=fresh) as tree:
            screen.print(f"Holdfast is starting on {folder.url}")
            with RunCounts(tree.databases) as counts:
                _show_until_stopped(tree, counts, screen, signals)
                screen.print("stopping; Ctrl-C again stops at once")
                killed = list(tree.stop())
                return _summary(screen, tree, counts, killed)
    except StopNow:
        console.print("stopped at once; the next start continues the runs that were interrupted")
        return STOPPED_NOW


def _show_until_stopped(tree: ProcessTree, counts: RunCounts, screen: Screen, signals: Signals) -> None:
    url_printed = False
    while not signals.wait(POLL_INTERVAL):
        tree.poll()
        if not url_printed and tree.site.state == "up":
            url_printed = True
            screen.print(f"open {tree.url}/start?token={quote(tree.token, safe='')}", style="bold")
        screen.show(tree.statuses(), counts.line())


def _summary(screen: Screen, tree: ProcessTree, counts: RunCounts, killed: list[str]) -> int:
    screen.print(f"stopped after {time.monotonic() - counts.began:.0f} s; {counts.line(now=True)}")
    failed = [child for child in tree.children if child.deaths and child.reason]
    for child in failed:
        screen.print(f"  {child.reason}", style="red")
    for name in killed:
        screen.print(f"  {name} did not stop in time and was killed", style="red")
    screen.print(f"databases, artifacts and logs are in {tree.folder.path}")
    screen.print(f"list the runs of the tour with: holdfast runs list {tree.folder.url}")
    return FAILED if failed or killed else OK
