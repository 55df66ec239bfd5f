"""holdfast submit: submit a run from the shell."""

from __future__ import annotations

import json
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from holdfast.app import Holdfast
from holdfast.cli import completion, exit_codes, json_output, parameters, run_tables, screen, targets
from holdfast.cli.follow import watch
from holdfast.jobs.job import Job
from holdfast.runs.handle import Run
from holdfast.support.errors import RunFailed

_ARGUMENT = re.compile(r"([A-Za-z_]\w*)(:?=)(.*)", re.DOTALL)
_DELAY = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)?")
_UNITS = {None: "seconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Delay(click.ParamType[timedelta]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        found = _DELAY.fullmatch(str(value))
        if found is None:
            self.fail(f"{value!r} is not a duration; write 90, 90s, 5m, 2h or 1d", param, ctx)
        return timedelta(**{_UNITS[found[2]]: float(found[1])})


@click.command()
@parameters.target_argument("app")
@click.argument("job", shell_complete=completion.jobs)
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option(
    "--json-args",
    metavar="OBJECT|@FILE|-",
    help="All arguments as one JSON object instead of NAME=VALUE: as text, from a file (@FILE), or from stdin (-).",
)
@click.option("--queue", shell_complete=completion.queues, help="Queue to use instead of the job's own.")
@click.option("--priority", type=int, help="Runs with a higher priority start first.")
@click.option("--delay", type=Delay(), help="Start later: 90, 90s, 5m, 2h, 1d.")
@click.option("--key", help="At most `key_limit` runs (by default one) with the same key run at once.")
@click.option("--idempotency-key", metavar="KEY", help="Submitting again with the same key returns the same run.")
@click.option("--tag", "tags", multiple=True, metavar="NAME=VALUE", help="Tag to search by; may be repeated.")
@click.option("--wait", is_flag=True, help="Wait until the run has ended, then print its result.")
@click.option("--follow", is_flag=True, help="Show progress and events until the run has ended, then print its result.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Wait or follow at most this long, then exit with code 8.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the run as JSON.")
def submit(
    app: str,
    job: str,
    arguments: tuple[str, ...],
    json_args: str | None,
    queue: str | None,
    priority: int | None,
    delay: timedelta | None,
    key: str | None,
    idempotency_key: str | None,
    tags: tuple[str, ...],
    wait: bool,
    follow: bool,
    timeout: float | None,
    as_json: bool,
) -> int:
    """Submit a run of JOB and print its id.

    JOB is the name of a job, or its last part if that is unique. NAME=VALUE passes text, which is converted to the type
    of the parameter's annotation (a number, a date …). NAME:=JSON passes a JSON value.

    \b
    holdfast submit app:hf greet name=Ada
    holdfast submit app:hf resize sizes:='[64, 128]' --delay 5m --priority 10
    holdfast submit app:hf greet --json-args '{"name": "Ada"}' --wait
    holdfast submit app:hf resize --json-args @sizes.json --follow
    """
    given = _arguments(arguments, json_args)
    with targets.application(app, or_server=True) as hf:
        found = _find(hf, job)
        if isinstance(hf, Holdfast):  # a server checks this itself
            hf.jobs.require_open(found.name)
        options = found.using(
            queue=queue,
            priority=priority,
            delay=delay,
            key=None if key is None else lambda **_: key,
            idempotency_key=idempotency_key,
            tags=dict(tag_of(tag) for tag in tags) or None,
        )
        if isinstance(options, Job):  # a server converts the arguments itself
            given = options.arguments.from_json(given)
        run = options.submit(**given)
        if follow:
            watch(hf, run.id, timeout)
        if wait or follow:
            return _wait(run, timeout, as_json=as_json)
        return _queued(app, run, as_json=as_json)


def _queued(app: str, run: Run[Any], *, as_json: bool) -> int:
    run_tables.submitted(run, as_json=as_json)
    if sys.stdout.isatty() and not as_json:
        screen.note(f"queued; follow it with: holdfast runs follow {app} {run.id}", style="dim")
    return exit_codes.OK


def _wait(run: Run[Any], timeout: float | None, *, as_json: bool) -> int:
    try:
        run.result(timeout)
    except RunFailed:
        if not as_json:
            raise
    shape = json_output.run(run.snapshot)
    screen.document(shape if as_json else shape["result"])
    return exit_codes.OK if run.state == "succeeded" else exit_codes.PROBLEM


def _find(hf: Holdfast, name: str) -> Job[..., Any]:
    return hf.jobs[targets.full_job_name(name, hf.jobs)]


def _arguments(pairs: tuple[str, ...], json_args: str | None) -> dict[str, Any]:
    if json_args is not None:
        if pairs:
            raise click.UsageError("give NAME=VALUE or --json-args, not both")
        given = _json(_text(json_args), "--json-args")
        if not isinstance(given, dict):
            raise click.UsageError('--json-args must be a JSON object: {"name": "value"}')
        return given
    found: dict[str, Any] = {}
    for pair in pairs:
        match = _ARGUMENT.fullmatch(pair)
        if match is None:
            raise click.UsageError(f"{pair!r} is not an argument; write NAME=VALUE or NAME:=JSON")
        name, sign, value = match.groups()
        if name in found:
            raise click.UsageError(f"{name} is given twice")
        found[name] = _json(value, name) if sign == ":=" else value
    return found


def _text(given: str) -> str:
    """Return the text itself, the content of `@FILE`, or stdin for `-`."""
    if given != "-" and not given.startswith("@"):
        return given
    try:
        return sys.stdin.buffer.read().decode() if given == "-" else Path(given[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--json-args {given}: {error}") from None


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{what}: not JSON: {error}") from None


def tag_of(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise click.UsageError(f"--tag {text!r}: write NAME=VALUE")
    return name, value
