"""holdfast completion: what the shell needs to complete commands, options, and what a TARGET has: jobs, runs, queues.

Click completes commands and options. A function below completes a parameter, from what is cheap to look at; one that
fails completes nothing.
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

# Bash cuts words at ':' and '=', of which targets and arguments have many: we read the line itself instead, and give
# back what stands behind the last of these.
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
    """Bash, with words that may have colons in them."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ.get("HOLDFAST_LINE", "")
        words = split_arg_string(line)
        self._incomplete = "" if not words or line[-1:].isspace() else words.pop()
        return words[1:], self._incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        there = max(self._incomplete.rfind(mark) for mark in ":=") + 1
        return f"{item.type},{item.value[there:] if item.type == 'plain' else item.value}"


@click.command(short_help="A script that lets your shell complete.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> int:
    """Print a script that lets bash, zsh or fish complete commands, options, and the jobs and runs of a TARGET.

    \b
    holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast
    holdfast completion zsh > ~/.zfunc/_holdfast      (a folder of $fpath)
    holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    made = shell_completion.get_completion_class(shell)
    assert made is not None
    click.echo(made(ctx.find_root().command, {}, "holdfast", VARIABLE).source(), nl=False)
    return exit_codes.OK


NEWEST = 50
FILES, CHARACTERS = 100, 100_000
_HOLDFAST = re.compile(r"^(\w+)\s*(?::[^=\n]+)?=\s*(?:\w+\.)?Holdfast\(", re.MULTILINE)

Item = CompletionItem[str]
Suggest = Callable[[click.Context, click.Parameter, str], list[Item]]
"""What click calls for the `shell_complete` of a parameter."""
Found = Iterator[tuple[str, str]]
"""What may stand there, and what it is."""


def of_target(asked: Callable[[Holdfast], Found]) -> Suggest:
    """Suggest what the TARGET of the line has."""

    def suggest(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Item]:
        # While the value of an option is completed, click leaves the arguments unassigned; TARGET is always the first.
        target = ctx.params.get("target") or ctx.params.get("app") or next(iter(ctx.args), None)
        # An application that prints when it is imported must not be taken for a suggestion.
        with (
            contextlib.suppress(Exception),
            contextlib.redirect_stdout(io.StringIO()),
            targets.either(str(target)) as hf,
        ):
            return _fitting(asked(hf), incomplete)
        return []

    return suggest


def targets_here(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Item]:
    """Databases and applications of this folder."""
    found = [(f"sqlite:///{file.name}", "a database") for file in sorted(Path().glob("*.db"))[:FILES]]
    for file in sorted(Path().glob("*.py"))[:FILES]:
        with contextlib.suppress(OSError, UnicodeDecodeError), open(file, encoding="utf-8") as source:
            found += [(f"{file.stem}:{name}", "an application") for name in _HOLDFAST.findall(source.read(CHARACTERS))]
    return _fitting(found, incomplete)


def _fitting(found: Iterable[tuple[str, str]], incomplete: str) -> list[Item]:
    """Whole words only: what has a control character or a comma in it would confuse the shell."""
    return [
        CompletionItem(value, help=what)
        for value, what in found
        if value.startswith(incomplete) and value.isprintable() and not re.search(r"[,\s'\"\\$`]", value)
    ]


@of_target
def runs(hf: Holdfast) -> Found:
    for run in hf.search(limit=NEWEST).items:
        yield run.id, f"{run.state} {run.job}"


@of_target
def builds(hf: Holdfast) -> Found:
    for build in hf.builds.list(limit=NEWEST):
        yield build.run_id, f"{build.state} {build.job}"


@of_target
def pipelines(hf: Holdfast) -> Found:
    for run in hf.pipelines.list(limit=NEWEST):
        yield run.id, f"{run.state} {run.job}"


@of_target
def jobs(hf: Holdfast) -> Found:
    for name in hf.jobs.names() or sorted(targets.job_names(hf)):
        yield name, "a job"


@of_target
def queues(hf: Holdfast) -> Found:
    for name in sorted({queue.name for queue in hf.queues.list()} | {hf.jobs[job].options.queue for job in hf.jobs}):
        yield name, "a queue"


@of_target
def schedules(hf: Holdfast) -> Found:
    for schedule in hf.schedules.list():
        yield schedule.name, schedule.trigger


@of_target
def workers(hf: Holdfast) -> Found:
    for worker in hf.workers.list():
        yield worker.id, f"on {worker.host}"


@of_target
def tokens(hf: Holdfast) -> Found:
    for one in hf.passes.list():
        yield one.name, one.role
