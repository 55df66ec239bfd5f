"""Execution: one run of the engine for one document, from an empty folder to its output files.

PLACE/inside/      input, configuration, output: all that the engine may change
PLACE/kept/        its outputs, taken out of its reach before anyone looks at them
PLACE/preview/     what a preview may change
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from apps.ade import engine_events, process
from apps.ade.engine_events import Event
from apps.ade.install import python_of
from apps.ade.process import Ended, Limits, TookTooLong

PREVIEW = Path(__file__).with_name("preview.py")
WORKBOOK = "output.xlsx"
OUTPUTS = (WORKBOOK, "report.json")

Heard = Callable[[Event], None]


class RunFailed(Exception):
    """The engine came to no result; `code` is its own word for why."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Execution:
    """What a run has to do, in a folder of its own."""

    place: Path
    environment: Path
    name: str
    limits: Limits
    over_at: float
    """When Holdfast ends the run, as `time.monotonic` counts."""

    @property
    def inside(self) -> Path:
        return self.place / "inside"

    @property
    def input(self) -> Path:
        return self.inside / "input"

    @property
    def configuration(self) -> Path:
        return self.inside / "configuration"

    @property
    def output(self) -> Path:
        return self.inside / "output"

    @property
    def kept(self) -> Path:
        return self.place / "kept"

    def outputs(self) -> list[Path]:
        """What the engine has left, with its final name: plain files only, wherever a link may lead.

        They are moved first: what the engine may have left running can't put a link in their place.
        """
        with contextlib.suppress(FileNotFoundError):
            self.output.rename(self.kept)
        if self.kept.is_symlink():
            return []
        found = [self.kept / name for name in OUTPUTS]
        return [file for file in found if file.is_file() and not file.is_symlink() and file.stat().st_size]

    def do(self, heard: Heard) -> Event:
        """Run the engine; its last event, or RunFailed with a reason in plain words."""
        last: list[Event] = []

        def on_line(line: bytes) -> None:
            event = engine_events.event_of(line)
            if event is not None:
                last[:] = [event]
                heard(event)

        ended = process.execute(
            [
                *(python_of(self.environment), "-I", "-m", "ade_engine", "run"),
                *("--config", self.configuration, "--input", self.input, "--output", self.output),
                *("--name", self.name, "--max-output-bytes", str(self.limits.file_size)),
            ],
            folder=self.inside,
            reads=[self.environment],
            limits=self.limits,
            on_line=on_line,
        )
        return _result(ended, last[-1] if last else None)

    def preview(self) -> Path | None:
        """The first rows of each sheet as JSON, read where nothing else can be reached; None if that does not work.

        It has half of the time that is left, so that the run itself can still end in time.
        """
        folder = self.place / "preview"
        folder.mkdir()
        made = folder / "preview.json"
        try:
            ended = process.execute(
                [python_of(self.environment), "-I", PREVIEW, self.kept / WORKBOOK, made],
                folder=folder,
                reads=[self.environment, PREVIEW, self.kept],
                limits=replace(self.limits, seconds=max(0.0, self.over_at - time.monotonic()) / 2),
            )
        except TookTooLong:
            return None
        return made if ended.code == 0 and made.is_file() and not made.is_symlink() else None


def _result(ended: Ended, last: Event | None) -> Event:
    if ended.code == 0 and last is not None and last["event"] == "run.finished":
        return last
    if last is not None and last["event"] == "run.failed":
        code = str(last.get("code") or "engine")
        raise RunFailed(f"{last.get('message') or 'the engine failed'} ({code})", code=code)
    if ended.code < 0:
        how = f"the engine was killed by {signal.Signals(-ended.code).name}"
        how += {
            signal.SIGXCPU: ": it used more processor time than a run may",
            signal.SIGXFSZ: ": it wrote a larger file than a run may",
            signal.SIGKILL: ": perhaps it used more memory than there is",
        }.get(signal.Signals(-ended.code), "")
    else:
        how = f"the engine ended with {ended.code} and without a result"
    raise RunFailed(f"{how}; it said last: {ended.reason or 'nothing'}", code="died")
