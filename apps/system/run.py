"""Run: the system for a person to watch, until they stop it."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from rich.console import Console

from apps.application import Application
from apps.system.folder import Folder
from apps.system.ledger import Ledger
from apps.system.screen import Screen
from apps.system.signals import AtOnce, Signals
from apps.system.tree import KEPT, Tree, databases
from holdfast import Holdfast

OK, TROUBLE, AT_ONCE = 0, 1, 130
LOOK: Final = 0.25
WAIT: Final = 60  # seconds for a database that restarts or is not up yet


@contextlib.contextmanager
def system(applications: Sequence[Application], folder: Folder, *, port: int, fresh: bool) -> Iterator[Tree]:
    """A started tree; whatever happens inside, nothing of it is left afterwards."""
    folder.take(fresh=fresh)
    try:
        for url in databases(applications, folder):
            with Holdfast(url) as hf:
                hf.start(wait=WAIT)  # the tables are made once, here, before anyone needs them
        token = os.environ.get(KEPT) or secrets.token_urlsafe(24)
        tree = Tree(applications, folder, token=token, first_port=port)
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
        with Screen(console) as screen, system(applications, folder, port=port, fresh=fresh) as tree:
            screen.say(f"Holdfast is starting on {folder.url}")
            with Ledger(tree.databases) as ledger:
                _watch(tree, ledger, screen, signals)
                screen.say("stopping; Ctrl-C again stops at once")
                killed = list(tree.stop())
                return _summary(screen, tree, ledger, killed)
    except AtOnce:
        console.print("stopped at once; what was running is taken over at the next start")
        return AT_ONCE


def _watch(tree: Tree, ledger: Ledger, screen: Screen, signals: Signals) -> None:
    opened = False
    while not signals.wait(LOOK):
        tree.look()
        if not opened and tree.site.state == "up":
            opened = True
            screen.say(f"open {tree.url}/start?token={quote(tree.token, safe='')}", style="bold")
        screen.show(tree.standings(), ledger.line())


def _summary(screen: Screen, tree: Tree, ledger: Ledger, killed: list[str]) -> int:
    screen.say(f"stopped after {time.monotonic() - ledger.began:.0f} s; {ledger.line(now=True)}")
    failed = [child for child in tree.children if child.deaths and child.reason]
    for child in failed:
        screen.say(f"  {child.reason}", style="red")
    for name in killed:
        screen.say(f"  {name} did not stop when asked and was killed", style="red")
    screen.say(f"all of it is in {tree.folder.path}; look at it with: holdfast runs list {tree.folder.url}")
    return TROUBLE if failed or killed else OK
