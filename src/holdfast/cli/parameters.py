"""Parameters that several commands share, each with its shell completion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from holdfast.cli import completion
from holdfast.cli.completion import Suggest

HELP = (
    "TARGET is an application (app:hf or path/app.py:hf), a database URL (sqlite:///work.db, postgresql://…) or a "
    "server URL (http://…). You can also pass a server URL with --url instead of TARGET."
)
LOCAL_HELP = (
    "TARGET is an application (app:hf or path/app.py:hf) or a database URL (sqlite:///work.db, postgresql://…)."
)

F = TypeVar("F", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
limit_option = click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of rows."
)


def target_argument(name: str = "target", *, local_only: bool = False) -> Callable[[F], F]:
    """Add the first argument of a command, and explain it at the end of the command's help.

    `local_only` says that the command refuses servers.
    """

    def decorate(command: F) -> F:
        if name == "target":
            command.__doc__ = f"{command.__doc__}\n    {LOCAL_HELP if local_only else HELP}\n    "
        metavar = "APP" if name == "app" else "TARGET"
        return click.argument(name, metavar=metavar, shell_complete=completion.targets_here)(command)

    return decorate


def run_argument(suggest: Suggest = completion.runs) -> Callable[[F], F]:
    """Add the argument ID, the id of a run."""
    return click.argument("run_id", metavar="ID", shell_complete=suggest)


def before_option(suggest: Suggest = completion.runs) -> Callable[[F], F]:
    """Add `--before`, which continues a list on its next page."""
    return click.option(
        "--before",
        metavar="ID",
        shell_complete=suggest,
        help="Show the next page: give the last id of the previous page.",
    )
