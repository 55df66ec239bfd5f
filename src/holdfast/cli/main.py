"""The `holdfast` command: its subcommands, and how an error becomes one line and an exit code."""

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

VARIABLE = "_HOLDFAST_COMPLETE"  # set by a shell when it requests completions
COMMANDS = {
    "artifacts": ("artifacts", "List and download the files that runs have published."),
    "backup": ("backup", "Copy a SQLite database while it is in use."),
    "builds": ("builds", "List, inspect, invalidate and rebuild builds."),
    "completion": ("completion", "Print a completion script for your shell."),
    "doctor": ("doctor", "Check the database, the clock and the schema, with advice."),
    "keys": ("keys", "List keys and the runs that hold them."),
    "migrate": ("database", "Create or update the tables."),
    "orchestrator": ("worker", "Promote, recover and schedule runs without executing any."),
    "pipelines": ("pipelines", "List, inspect and rerun pipelines."),
    "queues": ("queues", "List, pause, resume and limit queues."),
    "prune": ("prune", "Delete finished runs past their retention period."),
    "runs": ("runs", "List, inspect, follow, cancel and repeat runs."),
    "schedules": ("schedules", "List, trigger, pause and resume schedules."),
    "serve": ("serve", "Serve the API and the dashboard, and print a URL that signs you in."),
    "submit": ("submit", "Submit a run of JOB and print its id."),
    "tokens": ("tokens", "Create, list and revoke tokens for the API and the dashboard."),
    "top": ("top", "Show queues, throughput, workers and failures, live."),
    "verify": ("database", "Check that the database is consistent."),
    "worker": ("worker", "Start a worker that executes queued runs."),
    "workers": ("workers", "List live workers, and drain one."),
}
"""The module of each command, imported when the command is used, and its line in the help."""


class Command(click.Group):
    """A group whose commands return their exit code and whose errors are printed as one line."""

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
                import_module("holdfast.cli.completion")  # registers our completion classes with click
            words, completing = remote.normalised(self, given), complete_var or VARIABLE
            answer = super().main(words, prog_name or "holdfast", completing, standalone_mode=False, **extra)
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
        except ClosedPipe:
            # Python flushes stdout once more at exit; point it at /dev/null so that this does not fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(exit_codes.CLOSED_PIPE)
        except Exception as error:
            if "--debug" in given:
                raise
            code, message, status = (
                "unexpected",
                f"{type(error).__name__}: {error} (--debug shows the traceback)",
                exit_codes.PROBLEM,
            )
        screen.note(f"holdfast: {code}: {message}")
        sys.exit(status)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            # click itself would exit with code 1.
            raise ClosedPipe from error


class ClosedPipe(Exception):
    """The program that read our output has closed the pipe."""


@click.group(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="holdfast")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option("--url", metavar="URL", help="URL of a server, instead of TARGET; allowed anywhere on the line.")
@click.option("--token", metavar="TOKEN", help="Token for that server.  [default: the variable HOLDFAST_TOKEN]")
def main(debug: bool, url: str | None, token: str | None) -> None:
    """Run background jobs on the database you already have.

    The first argument of most commands is an application, written as module:attribute. For example, app:hf is `hf` in
    app.py of this folder; path/app.py:hf works, too. Commands that need no application code also accept the URL of a
    database, and most of them the URL of a server. To begin, start a worker and submit a run:

    \b
    holdfast worker app:hf                       start a worker
    holdfast submit app:hf greet name=Ada        submit a run
    holdfast runs list sqlite:///work.db         list runs
    holdfast runs why sqlite:///work.db ID       explain the state of a run
    holdfast top app:hf                          watch queues and workers, live
    holdfast runs list http://127.0.0.1:8700     ask a server; its token is in HOLDFAST_TOKEN

    Every command has --help. Exit codes: 0: success; 1: problem; 2: usage error; 3: not found; 4: unfinished runs
    were released; 5: stopped at once; 6: database or server unavailable; 7: name, lock or port in use; 8: timed out.
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
