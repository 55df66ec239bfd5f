"""holdfast completion: what the shell needs to complete commands, options, jobs, runs and queues."""

from __future__ import annotations

import click
from click import shell_completion
from click.shell_completion import BashComplete, CompletionItem, split_arg_string

from holdfast.cli import exit_codes
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
        import os

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
