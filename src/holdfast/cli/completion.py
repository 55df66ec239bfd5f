"""holdfast completion: shell completion of commands, options, and the jobs, runs and queues of a TARGET.

Click completes commands and options. The functions below complete parameters with cheap reads. A function that
fails suggests nothing.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
from click import shell_completion
from click.shell_completion import BashComplete, CompletionItem, split_arg_string

from holdfast.app import Holdfast
from holdfast.cli import exit_codes, targets
from holdfast.cli.main import VARIABLE

SHELLS = ("bash", "zsh", "fish")

# Bash splits words at ':' and '=', which are common in targets and arguments. So we read the whole line instead, and
# return only the part after the last of these characters.
_BASH = """\
%(complete_func)s() {
    local kind value
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
        esac
    done < <(HOLDFAST_LINE="${COMP_LINE:0:$COMP_POINT}" %(complete_var)s=bash_complete "$1" 2>/dev/null)
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/] ]] && compopt -o nospace
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@shell_completion.add_completion_class
class WholeWords(BashComplete):
    """Completes words in bash that contain colons or equals signs."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("HOLDFAST_LINE", "")
        words = split_arg_string(line)
        self._incomplete = "" if not words or line[-1:].isspace() else words.pop()
        return words[1:], self._incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        there = max(self._incomplete.rfind(mark) for mark in ":=") + 1
        return f"{item.type},{item.value[there:] if item.type == 'plain' else item.value}"


@click.command(short_help="Print a completion script for your shell.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print a completion script for bash, zsh or fish.

    It completes commands, options, and the jobs, runs and queues of a TARGET.

    \b
    holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast
    holdfast completion zsh > ~/.zfunc/_holdfast      (~/.zfunc must be in $fpath)
    holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    completer = shell_completion.get_completion_class(shell)
    assert completer is not None
    click.echo(completer(ctx.find_root().command, {}, "holdfast", VARIABLE).source(), nl=False)
    return exit_codes.OK


NEWEST = 50
FILES, CHARACTERS = 100, 100_000
_HOLDFAST = re.compile(r"^(\w+)\s*(?::[^=\n]+)?=\s*(?:\w+\.)?Holdfast\(", re.MULTILINE)

Item = CompletionItem[str]
Suggest = Callable[[click.Context, click.Parameter, str], list[Item]]
"""The type of a parameter's `shell_complete`."""
Values = Iterator[tuple[str, str]]
"""Possible values, each with a short description."""


def of_target(values: Callable[[Holdfast], Values]) -> Suggest:
    """Suggest values that are read from the TARGET of the command line."""

    def suggest(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Item]:
        # While click completes the value of an option, it has not assigned the arguments yet; TARGET is the first.
        target = ctx.params.get("target") or ctx.params.get("app") or next(iter(ctx.args), None)
        # Text that an application prints at import must not look like a suggestion.
        with (
            contextlib.suppress(Exception),
            contextlib.redirect_stdout(io.StringIO()),
            targets.resolve(str(target)) as hf,
        ):
            return _fitting(values(hf), incomplete)
        return []

    return suggest


def targets_here(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Item]:
    """Suggest the databases and applications of the current folder."""
    found = [(f"sqlite:///{file.name}", "a database") for file in sorted(Path().glob("*.db"))[:FILES]]
    for file in sorted(Path().glob("*.py"))[:FILES]:
        with contextlib.suppress(OSError, UnicodeDecodeError), open(file, encoding="utf-8") as source:
            found += [(f"{file.stem}:{name}", "an application") for name in _HOLDFAST.findall(source.read(CHARACTERS))]
    return _fitting(found, incomplete)


def _fitting(found: Iterable[tuple[str, str]], incomplete: str) -> list[Item]:
    """Return the values that start with the text, without those whose characters would confuse the shell."""
    return [
        CompletionItem(value, help=what)
        for value, what in found
        if value.startswith(incomplete) and value.isprintable() and not re.search(r"[,\s'\"\\$`]", value)
    ]


@of_target
def runs(hf: Holdfast) -> Values:
    for run in hf.search(limit=NEWEST).items:
        yield run.id, f"{run.state} {run.job}"


@of_target
def builds(hf: Holdfast) -> Values:
    for build in hf.builds.list(limit=NEWEST):
        yield build.run_id, f"{build.state} {build.job}"


@of_target
def pipelines(hf: Holdfast) -> Values:
    for run in hf.pipelines.list(limit=NEWEST):
        yield run.id, f"{run.state} {run.job}"


@of_target
def jobs(hf: Holdfast) -> Values:
    for name in hf.jobs.names() or sorted(targets.job_names(hf)):
        yield name, "a job"


@of_target
def queues(hf: Holdfast) -> Values:
    for name in sorted({queue.name for queue in hf.queues.list()} | {hf.jobs[job].options.queue for job in hf.jobs}):
        yield name, "a queue"


@of_target
def schedules(hf: Holdfast) -> Values:
    for schedule in hf.schedules.list():
        yield schedule.name, schedule.trigger


@of_target
def workers(hf: Holdfast) -> Values:
    for worker in hf.workers.list():
        yield worker.id, f"on {worker.host}"


@of_target
def tokens(hf: Holdfast) -> Values:
    for one in hf.tokens.list():
        yield one.name, one.role
