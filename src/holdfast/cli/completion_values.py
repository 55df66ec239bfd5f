"""Suggestions: what a parameter may be, from what is cheap to look at. A completion never fails: it has none."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from holdfast.cli import targets
from holdfast.engine import Holdfast

NEWEST = 50
FILES, CHARACTERS = 100, 100_000
_HOLDFAST = re.compile(r"^(\w+)\s*(?::[^=\n]+)?=\s*(?:\w+\.)?Holdfast\(", re.MULTILINE)

Item = CompletionItem[str]
Suggest = Callable[[click.Context, str], list[Item]]
Found = Iterator[tuple[str, str]]
"""What may stand there, and what it is."""


def of(parameter: click.Parameter, *, group: str) -> Suggest | None:
    """What completes this parameter, if we know of something."""
    if parameter.name in ("target", "app"):
        return _targets
    asked = _RUNS.get(group, _runs) if parameter.metavar == "ID" else _OTHERS.get((group, parameter.name))
    return None if asked is None else partial(_suggest, asked)


def _suggest(asked: Callable[[Holdfast], Found], ctx: click.Context, incomplete: str) -> list[Item]:
    target = ctx.params.get("target") or ctx.params.get("app")
    # An application that prints when it is imported must not be taken for a suggestion.
    with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()), targets.either(str(target)) as hf:
        return _fitting(asked(hf), incomplete)
    return []


def _targets(ctx: click.Context, incomplete: str) -> list[Item]:
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


def _runs(hf: Holdfast) -> Found:
    for run in hf.list_runs(limit=NEWEST):
        yield run.id, f"{run.state} {run.job}"


def _builds(hf: Holdfast) -> Found:
    for build in hf.builds.list(limit=NEWEST):
        yield build.run_id, f"{build.state} {build.job}"


def _pipelines(hf: Holdfast) -> Found:
    for run in hf.pipelines.list(limit=NEWEST):
        yield run.id, f"{run.state} {run.job}"


def _jobs(hf: Holdfast) -> Found:
    for name in hf.jobs.names() or sorted(targets.job_names(hf)):
        yield name, "a job"


def _queues(hf: Holdfast) -> Found:
    for name in sorted({queue.name for queue in hf.queues.list()} | {hf.jobs[job].options.queue for job in hf.jobs}):
        yield name, "a queue"


def _schedules(hf: Holdfast) -> Found:
    for schedule in hf.schedules.list():
        yield schedule.name, schedule.trigger


def _workers(hf: Holdfast) -> Found:
    for worker in hf.workers.list():
        yield worker.id, f"on {worker.host}"


def _passes(hf: Holdfast) -> Found:
    for one in hf.passes.list():
        yield one.name, one.role


_RUNS: dict[str, Callable[[Holdfast], Found]] = {"builds": _builds, "pipelines": _pipelines}
_OTHERS: dict[tuple[str, Any], Callable[[Holdfast], Found]] = {
    ("", "job"): _jobs,
    ("", "queue"): _queues,
    ("", "queues"): _queues,
    ("runs", "job"): _jobs,
    ("runs", "queue"): _queues,
    ("runs", "parent"): _runs,
    ("builds", "job"): _jobs,
    ("queues", "name"): _queues,
    ("schedules", "name"): _schedules,
    ("workers", "worker_id"): _workers,
    ("tokens", "name"): _passes,
}
