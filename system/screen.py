"""Screen: shows the status of the applications, as a live table in a terminal and as a line per change elsewhere."""

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
COUNTS_INTERVAL = 30.0  # seconds between lines with the run counts, without a terminal
HINT = Text("Ctrl-C stops everything", style="dim")


class Screen:
    """Prints messages and the current status of the applications."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._printed: dict[str, tuple[str, str]] = {}
        self._counts_printed_at = time.monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            # No refresh thread: this process starts others, and forking while a thread runs is unsafe.
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def print(self, text: str, *, style: str = "") -> None:
        """Print a line that stays on the screen."""
        self._console.print(Text(text, style=style), soft_wrap=True)

    def show(self, statuses: Sequence[ApplicationStatus], counts: str) -> None:
        """Show the current statuses, with a line of run counts."""
        if self._live is not None:
            self._live.update(Group(Text(), _table(statuses), Text(), Text(counts), HINT), refresh=True)
            return
        for one in statuses:
            if self._printed.get(one.name) != (one.state, one.reason):
                self._printed[one.name] = (one.state, one.reason)
                self.print(f"{one.name}: {one.state}{f' ({one.reason})' if one.reason else ''}")
        if time.monotonic() - self._counts_printed_at > COUNTS_INTERVAL:
            self._counts_printed_at = time.monotonic()
            self.print(counts)


def _table(statuses: Sequence[ApplicationStatus]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("APPLICATION", "STATE", "WHAT IT DOES"):
        table.add_column(Text(name, style="bold"))
    for one in statuses:
        state = Text(one.state, style=STYLES[one.state])
        table.add_row(Text(one.name), state, Text(one.reason or one.shows, style="red" if one.reason else "dim"))
    return table
