"""Suggestions: what a parameter may be, from what is cheap to look at. A completion never fails: it has none."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from holdfast.app import Holdfast
from holdfast.cli import targets

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
