"""Run: the system for a person to watch, until they stop it."""

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
from system.process_tree import KEPT, ProcessTree, databases
from system.run_counts import RunCounts
from system.screen import Screen
from system.signals import Signals, StopNow

OK, TROUBLE, STOPPED_NOW = 0, 1, 130
LOOK: Final = 0.25
WAIT: Final = 60  # seconds for a database that restarts or is not up yet


@contextlib.contextmanager
def running_system(
    applications: Sequence[Application], folder: Folder, *, port: int, fresh: bool
) -> Iterator[ProcessTree]:
    """A started tree; whatever happens inside, nothing of it is left afterwards."""
    folder.take(fresh=fresh)
    try:
        for url in databases(applications, folder):
            with Holdfast(url) as hf:
                hf.start(wait=WAIT)  # the tables are made once, here, before anyone needs them
        token = os.environ.get(KEPT) or secrets.token_urlsafe(24)
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
    """Start everything, show it until someone asks to stop, stop it in order, say what it came to."""
    signals, console = Signals(), Console()
    signals.listen()
    try:
        with Screen(console) as screen, running_system(applications, folder, port=port, fresh=fresh) as tree:
            screen.say(f"Holdfast is starting on {folder.url}")
            with RunCounts(tree.databases) as counts:
                _watch(tree, counts, screen, signals)
                screen.say("stopping; Ctrl-C again stops at once")
                killed = list(tree.stop())
                return _summary(screen, tree, counts, killed)
    except StopNow:
        console.print("stopped at once; what was running is taken over at the next start")
        return STOPPED_NOW


def _watch(tree: ProcessTree, counts: RunCounts, screen: Screen, signals: Signals) -> None:
    opened = False
    while not signals.wait(LOOK):
        tree.look()
        if not opened and tree.site.state == "up":
            opened = True
            screen.say(f"open {tree.url}/start?token={quote(tree.token, safe='')}", style="bold")
        screen.show(tree.statuses(), counts.line())


def _summary(screen: Screen, tree: ProcessTree, counts: RunCounts, killed: list[str]) -> int:
    screen.say(f"stopped after {time.monotonic() - counts.began:.0f} s; {counts.line(now=True)}")
    failed = [child for child in tree.children if child.deaths and child.reason]
    for child in failed:
        screen.say(f"  {child.reason}", style="red")
    for name in killed:
        screen.say(f"  {name} did not stop when asked and was killed", style="red")
    screen.say(f"all of it is in {tree.folder.path}; look at it with: holdfast runs list {tree.folder.url}")
    return TROUBLE if failed or killed else OK
