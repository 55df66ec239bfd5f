"""Screen: what the terminal shows of a tree: a live table, or a line for every change where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from system.status import ApplicationStatus

STYLES = {"starting": "yellow", "up": "green", "failed": "red", "stopped": "dim"}
NOW_AND_THEN = 30.0  # seconds between lines about the work, where no one watches
HOW_TO_END = Text("Ctrl-C stops everything", style="dim")


class Screen:
    """Shows how the applications stand, again and again."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._told: dict[str, tuple[str, str]] = {}
        self._told_at = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            # No thread of its own: this process starts others, and threads and forks don't mix.
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str, *, style: str = "") -> None:
        """A line that stays."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def show(self, statuses: Sequence[ApplicationStatus], work: str) -> None:
        """How they stand now, with a line about the work that goes through."""
        if self._live is not None:
            self._live.update(Group(Text(), _table(statuses), Text(), Text(work), HOW_TO_END), refresh=True)
            return
        for one in statuses:
            if self._told.get(one.name) != (one.state, one.reason):
                self._told[one.name] = (one.state, one.reason)
                self.say(f"{one.name}: {one.state}{f' ({one.reason})' if one.reason else ''}")
        if time.monotonic() - self._told_at > NOW_AND_THEN:
            self._told_at = time.monotonic()
            self.say(work)


def _table(statuses: Sequence[ApplicationStatus]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("APPLICATION", "STATE", "SHOWS"):
        table.add_column(Text(name, style="bold"))
    for one in statuses:
        state = Text(one.state, style=STYLES[one.state])
        table.add_row(Text(one.name), state, Text(one.reason or one.shows, style="red" if one.reason else "dim"))
    return table
