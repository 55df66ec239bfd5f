"""The command: its groups, and what becomes of an error (one line, an exit code that means something)."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from holdfast import __version__
from holdfast.cli import exit_codes, remote, screen
from holdfast.support.errors import HoldfastError
from holdfast.support.text import plain

VARIABLE = "_HOLDFAST_COMPLETE"  # set by a shell that asks for completions
COMMANDS = {
    "artifacts": ("artifacts", "The files that runs have made."),
    "backup": ("backup", "Copy a SQLite database that is in use."),
    "builds": ("builds", "Look at builds, and have them made anew."),
    "completion": ("completion", "A script that lets your shell complete."),
    "doctor": ("doctor", "What Holdfast stands on here, with advice."),
    "keys": ("keys", "Look at keys."),
    "migrate": ("database", "Create or update the tables."),
    "orchestrator": ("worker", "Move what waits and take over what was lost, and run nothing."),
    "pipelines": ("pipelines", "Look at pipelines, and do them again."),
    "queues": ("queues", "Look at queues, pause and limit them."),
    "retain": ("prune", "Remove what has ended longer ago than it is kept."),
    "runs": ("runs", "Look at runs, and steer them."),
    "schedules": ("schedules", "Look at what runs by the clock, and steer it."),
    "serve": ("serve", "Serve the API and the dashboard, and print the URL that opens signed in."),
    "submit": ("submit", "Queue a run of JOB and print its id."),
    "tokens": ("tokens", "Give out tokens for the API and the dashboard, and take them back."),
    "top": ("top", "A live view: depth, rates, workers, failures."),
    "verify": ("database", "Check that every run is in exactly one place, and more."),
    "worker": ("worker", "Run what is queued."),
    "workers": ("workers", "Look at workers, and ask one to end."),
}
"""Each command with its module, which is imported when the command is used, and its line in the help."""


class Command(click.Group):
    """A group whose commands return their exit code, and whose errors are one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"holdfast.cli.{COMMANDS[cmd_name][0]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        warnings.showwarning = _warn
        given = list(sys.argv[1:] if args is None else args)
        try:
            _check_encoding(given)
            if VARIABLE in os.environ:
                import_module("holdfast.cli.completion")  # which knows the shells
            placed, completing = remote.placed(self, given), complete_var or VARIABLE
            answer = super().main(placed, prog_name or "holdfast", completing, standalone_mode=False, **extra)
            sys.stdout.flush()
            sys.exit(answer if isinstance(answer, int) else exit_codes.OK)
        except HoldfastError as error:
            code, message, status = error.code, str(error), exit_codes.BY_ERROR.get(error.code, exit_codes.PROBLEM)
            if "--debug" in given and error.__cause__ is not None:
                whole = "".join(traceback.format_exception(error.__cause__))
                click.echo(plain(whole, lines=True), err=True, nl=False)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            sys.exit(exit_codes.USAGE)
        except click.ClickException as error:
            code, message, status = "usage", _usage(error), exit_codes.USAGE
        except (KeyboardInterrupt, click.Abort):
            code, message, status = "interrupted", "stopped by Ctrl-C", exit_codes.INTERRUPTED
        except ReaderGone:
            # Python flushes once more at exit; give it somewhere to write to.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(exit_codes.READER_GONE)
        except Exception as error:
            if "--debug" in given:
                raise
            code, message, status = (
                "unexpected",
                f"{type(error).__name__}: {error} (--debug shows more)",
                exit_codes.PROBLEM,
            )
        screen.note(f"holdfast: {code}: {message}")
        sys.exit(status)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # click would end the process with 1 for it.
            raise ReaderGone from error


class ReaderGone(Exception):
    """Whoever read our output has gone."""


@click.group(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="holdfast")
@click.option("--debug", is_flag=True, help="Show the traceback of an error, where there is more to see.")
@click.option("--url", metavar="URL", help="Of a server, anywhere on the line: the same as TARGET.")
@click.option("--token", metavar="TOKEN", help="For that server, anywhere on the line; or the variable HOLDFAST_TOKEN.")
def main(debug: bool, url: str | None, token: str | None) -> None:
    """Background work on the database you already have.

    A command's first argument says where the work is: an application (app:hf means: `hf` in app.py of this folder;
    path/app.py:hf works too), a database URL where no code is needed, or the URL of a server.

    \b
    holdfast worker app:hf                       run what is queued
    holdfast submit app:hf greet name=Ada        queue a run
    holdfast runs list sqlite:///work.db         what there is
    holdfast runs why sqlite:///work.db ID       why a run is where it is
    holdfast top app:hf                          how it goes, live
    holdfast runs list http://127.0.0.1:8700     the same of a server, with its token in HOLDFAST_TOKEN

    Every command explains itself with --help. Exit codes: 0 fine, 1 a problem, 2 usage, 3 not found, 4 work handed
    back, 5 stopped at once, 6 database, 7 another worker, 8 not ended in time.
    """


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    screen.note(f"holdfast: warning: {message}", style="yellow")


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "holdfast"
    return f"{' '.join(error.format_message().split())} (see '{path} --help')"


def _check_encoding(given: Sequence[str]) -> None:
    for text in given:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"{text!r} is not valid UTF-8") from None
