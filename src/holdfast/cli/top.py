"""holdfast top: how it goes, again every second, until someone has seen enough."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Callable, Iterator

import click
from rich.console import RenderableType
from rich.live import Live

from holdfast.cli import exit_codes, screen, targets, top_view
from holdfast.engine import Holdfast
from holdfast.support.errors import ServerUnavailable, StoreBusy, StoreUnavailable


@click.command(short_help="A live view: depth, rates, workers, failures.")
@targets.target_argument()
@click.option(
    "--every",
    type=click.FloatRange(0.1, 3600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Look so often.",
)
@click.option("--once", is_flag=True, help="Print it once, for a pipe or a file.")
def top(target: str, every: float, once: bool) -> int:
    """What waits and runs, how fast it goes, what each worker does, and the newest failures. q or Ctrl-C ends it.

    \b
    holdfast top app:hf
    holdfast top sqlite:///work.db --once
    """
    with targets.either(target) as hf:
        if once or not sys.stdout.isatty():
            screen.show(top_view.frame(top_view.look(hf), height=None))
            return exit_codes.OK
        with contextlib.suppress(KeyboardInterrupt):
            _watch(hf, every)
        return exit_codes.OK


def _watch(hf: Holdfast, every: float) -> None:
    console = screen.stdout()
    with _keys() as pressed, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(_frame(hf, console.height), refresh=True)
            if pressed(every) in ("q", "Q", "\x03", "\x04"):
                return


def _frame(hf: Holdfast, height: int) -> RenderableType:
    """How it stands; a database (or a server) that is away for a moment is told of and asked again."""
    try:
        return top_view.frame(top_view.look(hf), height=height)
    except (StoreUnavailable, StoreBusy, ServerUnavailable) as error:
        return top_view.trouble(str(error))


@contextlib.contextmanager
def _keys() -> Iterator[Callable[[float], str]]:
    """A key that is pressed within so many seconds, or nothing; where no one can press one, just the pause."""
    if not sys.stdin.isatty():
        yield lambda seconds: _pressed([], seconds)
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    try:
        yield lambda seconds: _pressed([terminal], seconds)
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _pressed(terminals: list[int], seconds: float) -> str:
    ready, _, _ = select.select(terminals, [], [], seconds)
    # A terminal that has gone reads as nothing, at once and for ever: as good as Ctrl-D.
    return (os.read(ready[0], 1).decode("utf-8", "replace") or "\x04") if ready else ""
