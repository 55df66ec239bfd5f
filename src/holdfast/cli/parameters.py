"""Parameters that several commands have, each with what completes it in a shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from holdfast.cli import completion
from holdfast.cli.completion import Suggest

HELP = (
    "TARGET is an application (app:hf, or path/app.py:hf), a database URL (sqlite:///work.db, postgresql://…), or a "
    "server's URL (http://…; --url URL instead of TARGET is the same)."
)

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document instead of text.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many."
)


def target_argument(name: str = "target") -> Callable[[F], F]:
    """The first argument of a command, explained below its examples."""

    def explained(command: F) -> F:
        if name == "target":
            command.__doc__ = f"{command.__doc__}\n    {HELP}\n    "
        metavar = "APP" if name == "app" else "TARGET"
        return click.argument(name, metavar=metavar, shell_complete=completion.targets_here)(command)

    return explained


def run_argument(suggest: Suggest = completion.runs) -> Callable[[F], F]:
    """The id of a run."""
    return click.argument("run_id", metavar="ID", shell_complete=suggest)


def before_option(suggest: Suggest = completion.runs) -> Callable[[F], F]:
    """Where a list goes on."""
    return click.option(
        "--before", metavar="ID", shell_complete=suggest, help="Go on below this one: the last of the page before."
    )
