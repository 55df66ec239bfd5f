"""Check: the system without a person. Starts it, lets every application verify its sample work, stops it."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import httpx
from apps.shared.checks import CheckClient, Checked, NotInTime
from apps.shared.definition import Application
from rich.console import Console
from rich.text import Text

from holdfast import Holdfast
from system.folder import Folder
from system.process_tree import ProcessTree
from system.run import OK, STOPPED_NOW, TROUBLE, running_system
from system.signals import Signals, StopNow

UP_WITHIN: Final = 60.0
EACH_WITHIN: Final = 90.0
LOOK: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the table."""

    application: str
    checked: Checked
    seconds: float


def main(applications: Sequence[Application], folder: Folder, *, port: int, keep: bool) -> int:
    """Exit code 0 if everything was as it should be, with a table of what was looked at."""
    signals, console = Signals(), Console()
    signals.listen()
    lines: list[Line] = []
    _say(console, _row("APPLICATION", "WHAT WAS CHECKED", "RESULT", "SECONDS"), style="bold")
    try:
        with running_system(applications, folder, port=port, fresh=True) as tree:
            for line in _lines(tree, signals):
                lines.append(line)
                _print(console, line)
            for line in _ends(tree):
                lines.append(line)
                _print(console, line)
    except StopNow:
        return STOPPED_NOW
    faults = [line for line in lines if line.checked.fault is not None]
    for fault in faults:
        _say(console, f"{fault.application}: {fault.checked.what}: {fault.checked.fault}", style="red")
    if faults or signals.asked.is_set():
        _say(console, f"{len(faults)} of {len(lines)} failed; the database and the logs are in {folder.path}")
        return TROUBLE
    if not keep:
        shutil.rmtree(folder.path)
    _say(console, f"all {len(lines)} are as they should be")
    return OK


def _lines(tree: ProcessTree, signals: Signals) -> Iterator[Line]:
    began = time.monotonic()
    up = _up(tree, signals)
    yield Line(application="system", checked=up, seconds=time.monotonic() - began)
    if up.fault is None:
        for application in tree.applications:
            yield from _check(tree, application, signals)
        yield Line(application="system", checked=_lived(tree), seconds=0)


def _up(tree: ProcessTree, signals: Signals) -> Checked:
    """Wait until every process is up."""
    what, over_at = f"{len(tree.children)} processes are up", time.monotonic() + UP_WITHIN
    while time.monotonic() < over_at and not signals.wait(LOOK):
        tree.look()
        if all(child.state == "up" for child in tree.children):
            return Checked(what=what)
        if died := [child.reason for child in tree.children if child.deaths]:
            return Checked(what=what, fault="; ".join(died))
    slow = [child.process.name for child in tree.children if child.state != "up"]
    return Checked(what=what, fault=f"not within {UP_WITHIN:g} s: {', '.join(slow)}")


def _check(tree: ProcessTree, application: Application, signals: Signals) -> Iterator[Line]:
    def meanwhile() -> None:
        tree.look()
        if signals.asked.is_set():
            raise NotInTime("the check was stopped")

    url = next((child.url for child in tree.application_children[application.name] if child.process.listens), tree.url)
    client = CheckClient(url, token=tree.token, within=EACH_WITHIN, meanwhile=meanwhile)
    began = time.monotonic()
    try:
        for checked in application.check(client):
            yield Line(application=application.name, checked=checked, seconds=time.monotonic() - began)
            began = time.monotonic()
    except NotInTime as late:
        fault = Checked(what=str(late), fault=f"not within {EACH_WITHIN:g} s; {_died(tree)}")
        yield Line(application=application.name, checked=fault, seconds=time.monotonic() - began)
    except (httpx.HTTPError, LookupError, TypeError, ValueError) as error:
        fault = Checked(what="answers as expected", fault=f"{type(error).__name__}: {error}")
        yield Line(application=application.name, checked=fault, seconds=time.monotonic() - began)
    finally:
        client.close()


def _lived(tree: ProcessTree) -> Checked:
    """That no process died meanwhile."""
    tree.look()
    died = any(child.deaths for child in tree.children)
    return Checked(what="no process died", fault=_died(tree) if died else None)


def _died(tree: ProcessTree) -> str:
    told = [
        f"{child.process.name} died {child.deaths} times: {child.reason}" for child in tree.children if child.deaths
    ]
    return "; ".join(told) or "no process died"


def _ends(tree: ProcessTree) -> Iterator[Line]:
    """That everyone stops when asked, and leaves a sound database."""
    began = time.monotonic()
    killed = ", ".join(tree.stop())
    stopped = Checked(what="every process stopped when asked", fault=f"killed: {killed}" if killed else None)
    yield Line(application="system", checked=stopped, seconds=time.monotonic() - began)
    began = time.monotonic()
    found = []
    for url in tree.databases:
        with Holdfast(url) as hf:
            found += [f"{each.problem} {each.run_id} in {url}" for each in hf.verify()]
    sound = Checked(what="every run is in exactly one place", fault="; ".join(found) or None)
    yield Line(application="system", checked=sound, seconds=time.monotonic() - began)


def _print(console: Console, line: Line) -> None:
    good = line.checked.fault is None
    row = _row(line.application, line.checked.what, "ok" if good else "FAILED", f"{line.seconds:.1f}")
    _say(console, row, style="" if good else "red")


def _row(application: str, what: str, result: str, seconds: str) -> str:
    return f"{application:<12} {what:<58} {result:<6} {seconds:>8}"


def _say(console: Console, text: str, *, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)
