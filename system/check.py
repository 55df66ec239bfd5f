"""Check: starts the system, lets each application check its sample work, then stops it."""

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
from system.run import FAILED, OK, STOPPED_NOW, running_system
from system.signals import Signals, StopNow

UP_WITHIN: Final = 60.0
EACH_WITHIN: Final = 90.0
POLL_INTERVAL: Final = 0.1


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the printed table."""

    application: str
    checked: Checked
    seconds: float


def main(applications: Sequence[Application], folder: Folder, *, port: int, keep: bool) -> int:
    """Run all checks, print them as a table, and return exit code 0 if all of them passed."""
    signals, console = Signals(), Console()
    signals.listen()
    lines: list[Line] = []
    _print(console, _row("APPLICATION", "CHECK", "RESULT", "SECONDS"), style="bold")
    try:
        with running_system(applications, folder, port=port, fresh=True) as tree:
            for line in _check_running(tree, signals):
                lines.append(line)
                _print_line(console, line)
            for line in _check_stopping(tree):
                lines.append(line)
                _print_line(console, line)
    except StopNow:
        return STOPPED_NOW
    failed = [line for line in lines if line.checked.fault is not None]
    for line in failed:
        _print(console, f"{line.application}: {line.checked.what}: {line.checked.fault}", style="red")
    if failed or signals.stop_requested.is_set():
        _print(console, f"{len(failed)} of {len(lines)} checks failed; the database and the logs are in {folder.path}")
        return FAILED
    if not keep:
        shutil.rmtree(folder.path)
    _print(console, f"all {len(lines)} checks passed")
    return OK


def _check_running(tree: ProcessTree, signals: Signals) -> Iterator[Line]:
    began = time.monotonic()
    up = _wait_until_up(tree, signals)
    yield Line(application="system", checked=up, seconds=time.monotonic() - began)
    if up.fault is None:
        for application in tree.applications:
            yield from _check_application(tree, application, signals)
        yield Line(application="system", checked=_check_deaths(tree), seconds=0)


def _wait_until_up(tree: ProcessTree, signals: Signals) -> Checked:
    what, over_at = f"{len(tree.children)} processes are up", time.monotonic() + UP_WITHIN
    while time.monotonic() < over_at and not signals.wait(POLL_INTERVAL):
        tree.poll()
        if all(child.state == "up" for child in tree.children):
            return Checked(what=what)
        if died := [child.reason for child in tree.children if child.deaths]:
            return Checked(what=what, fault="; ".join(died))
    slow = [child.process.name for child in tree.children if child.state != "up"]
    return Checked(what=what, fault=f"not within {UP_WITHIN:g} s: {', '.join(slow)}")


def _check_application(tree: ProcessTree, application: Application, signals: Signals) -> Iterator[Line]:
    def meanwhile() -> None:
        tree.poll()
        if signals.stop_requested.is_set():
            raise NotInTime("the check was stopped")

    url = next((child.url for child in tree.application_children[application.name] if child.process.listens), tree.url)
    client = CheckClient(url, token=tree.token, within=EACH_WITHIN, meanwhile=meanwhile)
    began = time.monotonic()
    try:
        for checked in application.check(client):
            yield Line(application=application.name, checked=checked, seconds=time.monotonic() - began)
            began = time.monotonic()
    except NotInTime as late:
        fault = Checked(what=str(late), fault=f"not within {EACH_WITHIN:g} s; {_deaths(tree)}")
        yield Line(application=application.name, checked=fault, seconds=time.monotonic() - began)
    except (httpx.HTTPError, LookupError, TypeError, ValueError) as error:
        fault = Checked(what="answers as expected", fault=f"{type(error).__name__}: {error}")
        yield Line(application=application.name, checked=fault, seconds=time.monotonic() - began)
    finally:
        client.close()


def _check_deaths(tree: ProcessTree) -> Checked:
    tree.poll()
    died = any(child.deaths for child in tree.children)
    return Checked(what="no process died", fault=_deaths(tree) if died else None)


def _deaths(tree: ProcessTree) -> str:
    deaths = [
        f"{child.process.name} died {child.deaths} times: {child.reason}" for child in tree.children if child.deaths
    ]
    return "; ".join(deaths) or "no process died"


def _check_stopping(tree: ProcessTree) -> Iterator[Line]:
    """Check that every process stops when asked and that the databases are consistent."""
    began = time.monotonic()
    killed = ", ".join(tree.stop())
    stopped = Checked(what="every process stopped when asked", fault=f"killed: {killed}" if killed else None)
    yield Line(application="system", checked=stopped, seconds=time.monotonic() - began)
    began = time.monotonic()
    problems = []
    for url in tree.databases:
        with Holdfast(url) as hf:
            problems += [f"{each.problem} {each.run_id} in {url}" for each in hf.verify()]
    consistent = Checked(what="every run is in exactly one place", fault="; ".join(problems) or None)
    yield Line(application="system", checked=consistent, seconds=time.monotonic() - began)


def _print_line(console: Console, line: Line) -> None:
    passed = line.checked.fault is None
    row = _row(line.application, line.checked.what, "ok" if passed else "FAILED", f"{line.seconds:.1f}")
    _print(console, row, style="" if passed else "red")


def _row(application: str, what: str, result: str, seconds: str) -> str:
    return f"{application:<12} {what:<58} {result:<6} {seconds:>8}"


def _print(console: Console, text: str, *, style: str = "") -> None:
    console.print(Text(text, style=style), soft_wrap=True)
