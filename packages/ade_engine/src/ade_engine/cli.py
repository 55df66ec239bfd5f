"""Command line: `run`, `check` and `version`."""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from ade_engine import __version__
from ade_engine.errors import INTERNAL, LIMIT, EngineError, LimitExceeded
from ade_engine.events import Events, PrintCapture
from ade_engine.guard import Guard, brief
from ade_engine.limits import Limits
from ade_engine.loading import load_rules, read_manifest
from ade_engine.running import RunOptions, run

OUTPUTS = ("output.xlsx", "report.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Execute the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="ade_engine", description="Turns messy spreadsheets into one normalised workbook."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("version", help="print the version")
    checking = commands.add_parser("check", help="load a configuration and print its fields")
    checking.add_argument("--config", type=Path, required=True)
    running = commands.add_parser("run", help="normalise one document")
    for name in ("--config", "--input", "--output"):
        running.add_argument(name, type=Path, required=True)
    running.add_argument("--events-fd", type=descriptor, default=1, metavar="N|-")
    running.add_argument("--name", help="the document's name for the report (default: the file's name)")
    for name, default in Limits.names():
        running.add_argument("--" + name.replace("_", "-"), type=whole, default=default, metavar="N")
    parsed = parser.parse_args(arguments)
    # openpyxl warns about unknown extensions and odd styles, which a user can't fix.
    warnings.simplefilter("ignore")
    if parsed.command == "version":
        sys.stdout.write(__version__ + "\n")
        return 0
    if parsed.command == "check":
        return check(parsed.config)
    limits = Limits(**{name: getattr(parsed, name) for name, _ in Limits.names()})
    if parsed.output.is_dir() and any(parsed.output.iterdir()):
        running.error(f"the output folder {parsed.output} is not empty; choose an empty or a new folder")
    options = RunOptions(
        configuration=parsed.config,
        input=parsed.input,
        output=parsed.output,
        name=parsed.name or parsed.input.name,
        limits=limits,
    )
    try:
        private = reserve_descriptor(parsed.events_fd)
    except OSError as error:
        running.error(f"descriptor {parsed.events_fd} can't be used: {error.strerror}")
    return run_and_report(options, Events(private, max_events=max(2, limits.max_events)))


def run_and_report(options: RunOptions, events: Events) -> int:
    """Run the engine; the last event always says how it ended."""
    started = monotonic()
    prints = PrintCapture(events)
    sys.stdout = sys.stderr = prints
    if options.limits.max_memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (options.limits.max_memory_bytes, options.limits.max_memory_bytes))
    try:
        counts = run(options, events)
    except EngineError as error:
        failure = error
    except MemoryError:
        failure = LimitExceeded("limit_memory", "the engine ran out of memory")
    except BrokenPipeError:
        # The process that started this run has ended, so nothing reads the events any more.
        return INTERNAL
    except OSError as error:
        failure = EngineError("internal_error", f"the outputs can't be written: {error.strerror or error}")
    except Exception as error:
        failure = EngineError("internal_error", brief(error), at=line_of(error))
    else:
        prints.close_line()
        outputs = [{"name": name, "bytes": (options.output / name).stat().st_size} for name in OUTPUTS]
        events.end(
            "run.finished", **counts, outputs=outputs, seconds=round(monotonic() - started, 3), peak_memory_bytes=peak()
        )
        return 0
    finally:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    prints.close_line()
    events.end("run.failed", code=failure.code, message=failure.message[:2000], details=failure.details)
    return LIMIT if failure.code == "limit_memory" else failure.exit_code


def check(folder: Path) -> int:
    """Load a configuration, and print its description or the reason why it does not load."""
    try:
        manifest = read_manifest(folder)
        guard = Guard(folder.resolve(), seconds=Limits().call_seconds)
        real, sys.stdout = sys.stdout, sys.stderr
        try:
            with guard.watching():
                rules = load_rules(guard.folder, guard, engine=__version__, required=manifest.engine)
        finally:
            sys.stdout = real
    except EngineError as error:
        sys.stdout.write(json.dumps({"code": error.code, "message": error.message, "details": error.details}) + "\n")
        return error.exit_code
    fields = [
        {
            "name": field.name,
            "label": field.label,
            "required": field.required,
            "detectors": [step.name for step in field.detectors],
        }
        for field in rules.fields.values()
    ]
    description = {
        "name": manifest.name,
        "title": manifest.title,
        "version": manifest.version,
        "engine": __version__,
        "fields": fields,
    }
    sys.stdout.write(json.dumps(description, ensure_ascii=False) + "\n")
    return 0


def reserve_descriptor(number: int) -> int:
    """Duplicate the events descriptor so that no child inherits it, and redirect descriptor 1 to 2."""
    private = os.dup(number)
    os.set_inheritable(private, False)
    if number > 2:
        os.close(number)
    os.dup2(2, 1)
    return private


def descriptor(text: str) -> int:
    return 1 if text == "-" else whole(text)


def whole(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def line_of(error: BaseException) -> str | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace and f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
