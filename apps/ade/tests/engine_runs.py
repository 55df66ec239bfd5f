"""Runs the engine in tests: in this process to check results, or as a process to check exit codes and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from openpyxl import load_workbook

from ade_engine.errors import EngineError
from ade_engine.events import Events
from ade_engine.limits import Limits
from ade_engine.running import RunOptions, run

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "packages/ade_engine"
SAMPLES = ROOT / "apps/ade/samples"
INVOICES = SAMPLES / "configurations/supplier-invoices"
ROSTER = SAMPLES / "configurations/employee-roster"

MANIFEST = 'name = "test"\nengine = "1"\n'
PEOPLE = """
from ade_engine import Rules, headers, integer, text
rules = Rules()
rules.field("name", required=True, detectors=[headers("name")], transforms=[text])
rules.field("age", detectors=[headers("age")], transforms=[integer])
"""


@dataclass
class Outcome:
    """The outputs, the events and the error of a run."""

    folder: Path
    events: list[dict[str, Any]]
    error: EngineError | None = None

    def sheet(self, name: str = "Data") -> list[list[Any]]:
        """Return the rows of a sheet of the output, starting with the header."""
        book = load_workbook(self.folder / "output.xlsx")
        return [[plain(value) for value in row] for row in book[name].iter_rows(values_only=True)]

    @property
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.folder / "report.json").read_text("utf-8"))
        return report

    def of(self, event: str) -> list[dict[str, Any]]:
        return [one for one in self.events if one["event"] == event]


def plain(value: Any) -> Any:
    return value.date().isoformat() if isinstance(value, datetime) else value


def run_here(configuration: Path, document: Path, output: Path, *, name: str | None = None, **limits: int) -> Outcome:
    """Run the engine in this process, and unload the configuration's modules afterwards."""
    chosen = Limits(**{"call_seconds": 0, **limits})
    options = RunOptions(
        configuration=configuration, input=document, output=output, name=name or document.name, limits=chosen
    )
    output.mkdir(parents=True, exist_ok=True)
    trace = output.parent / f"{output.name}.events"
    descriptor = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    error = None
    try:
        with modules_as_before():
            run(options, Events(descriptor, max_events=chosen.max_events))
    except EngineError as raised:
        error = raised
    finally:
        os.close(descriptor)
    return Outcome(output, [json.loads(line) for line in trace.read_text("utf-8").splitlines()], error)


@contextmanager
def modules_as_before() -> Iterator[None]:
    modules, path = set(sys.modules), list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if name.split(".")[0] in ("rules", "names", "helper"):
                del sys.modules[name]


def start(*arguments: str, timeout: int = 50, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m ade_engine` and wait until it ends."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE / "src")}
    return subprocess.run(
        [sys.executable, "-m", "ade_engine", *arguments],
        capture_output=True,
        env=environment,
        timeout=timeout,
        check=False,
        **options,
    )


def run_process(
    configuration: Path, document: Path, output: Path, *arguments: str, timeout: int = 50
) -> tuple[int, list[dict[str, Any]], str]:
    """Run the engine as a process; return its exit code, its events and its standard error."""
    folders = ("--config", str(configuration), "--input", str(document), "--output", str(output))
    done = start("run", *folders, *arguments, timeout=timeout)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


def configuration(folder: Path, rules: str = PEOPLE, manifest: str = MANIFEST) -> Path:
    """Write a small configuration into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ade.toml").write_text(manifest)
    (folder / "rules.py").write_text(rules)
    return folder


def csv(folder: Path, text: str, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path
