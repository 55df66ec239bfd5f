"""holdfast runs follow: a run's events as they happen, until it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import click

from holdfast.app import Holdfast
from holdfast.cli import event_lines, exit_codes, parameters, screen, targets
from holdfast.support.errors import ResultTimeout
from holdfast.values.events import Event
from holdfast.values.runs import Snapshot

SOON, LATER = 0.1, 1.0
PAGE = 1000


@click.command(short_help="A run's events as they happen, until it ends.")
@parameters.target_argument()
@parameters.run_argument()
@click.option("--timeout", type=click.FloatRange(min=0), help="Follow at most so many seconds (then exit 8).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, as it happens.")
def follow(target: str, run_id: str, timeout: float | None, as_json: bool) -> int:
    """Print a run's events as they happen until it has ended. Exit 0 if it succeeded, else 1.

    \b
    holdfast runs follow app:hf 01m2…
    """
    with targets.either(target) as hf:
        run_id = targets.run_of(hf, run_id)
        follower = Follower(hf, run_id)
        for event in follower.events(timeout):
            if as_json:
                screen.line(event)
            else:
                screen.show(event_lines.line(event))
        return exit_codes.OK if follower.run.state == "succeeded" else exit_codes.PROBLEM


class Follower:
    """Reads what is new, seldom when nothing is."""

    def __init__(self, hf: Holdfast, run_id: str) -> None:
        self._hf, self._run_id = hf, run_id
        self._after: str | None = None
        self.run: Snapshot = hf.snapshot(run_id)

    def events(self, timeout: float | None) -> Iterator[Event]:
        clock = self._hf.clock
        started, pause = clock.elapsed(), SOON
        while True:
            news = self._hf.news(self._run_id, after=self._after, limit=PAGE)
            self.run = news.run
            for self._after, event in news.events:
                yield event
            if news.ended:
                return
            if timeout is not None and clock.elapsed() - started >= timeout:
                raise ResultTimeout(f"run {self._run_id} is still {self.run.state} after {timeout:g} s")
            pause = SOON if news.events else min(pause * 1.5, LATER)
            if len(news.events) < PAGE:
                threading.Event().wait(pause)
