"""Execution: runs the engine for one document, from an empty folder to its output files.

FOLDER/inside/      input, configuration and output: the engine may write only here
FOLDER/kept/        the outputs, moved here, where the engine can't change them, before they are read
FOLDER/preview/     the preview script may write only here
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
from apps.ade.process import Ended, Limits, TimedOut

PREVIEW = Path(__file__).with_name("preview.py")
WORKBOOK = "output.xlsx"
OUTPUTS = (WORKBOOK, "report.json")

OnEvent = Callable[[Event], None]


class RunFailed(Exception):
    """The engine failed; `code` is the engine's stable code for the reason."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Execution:
    """The engine's work for one run, in a folder of its own."""

    folder: Path
    environment: Path
    name: str
    limits: Limits
    deadline: float
    """The run's deadline, in `time.monotonic` seconds."""

    @property
    def inside(self) -> Path:
        return self.folder / "inside"

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
        return self.folder / "kept"

    def outputs(self) -> list[Path]:
        """Return the engine's output files: plain files only, never links.

        The folder is moved first, so that a process the engine left running can't replace a file by a link.
        """
        with contextlib.suppress(FileNotFoundError):
            self.output.rename(self.kept)
        if self.kept.is_symlink():
            return []
        files = [self.kept / name for name in OUTPUTS]
        return [file for file in files if file.is_file() and not file.is_symlink() and file.stat().st_size]

    def run(self, on_event: OnEvent) -> Event:
        """Run the engine and return its last event; raise RunFailed with the reason if it fails."""
        last: list[Event] = []

        def on_line(line: bytes) -> None:
            event = engine_events.event_of(line)
            if event is not None:
                last[:] = [event]
                on_event(event)

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
        """Write the first rows of each sheet as JSON, in a confined process; return None if that fails.

        It may take half of the remaining time, so that the run itself can still end in time.
        """
        folder = self.folder / "preview"
        folder.mkdir()
        preview = folder / "preview.json"
        try:
            ended = process.execute(
                [python_of(self.environment), "-I", PREVIEW, self.kept / WORKBOOK, preview],
                folder=folder,
                reads=[self.environment, PREVIEW, self.kept],
                limits=replace(self.limits, seconds=max(0.0, self.deadline - time.monotonic()) / 2),
            )
        except TimedOut:
            return None
        return preview if ended.code == 0 and preview.is_file() and not preview.is_symlink() else None


def _result(ended: Ended, last: Event | None) -> Event:
    if ended.code == 0 and last is not None and last["event"] == "run.finished":
        return last
    if last is not None and last["event"] == "run.failed":
        code = str(last.get("code") or "engine")
        raise RunFailed(f"{last.get('message') or 'the engine failed'} ({code})", code=code)
    if ended.code < 0:
        ending = f"the engine was killed by {signal.Signals(-ended.code).name}"
        ending += {
            signal.SIGXCPU: ": it used more processor time than a run may use",
            signal.SIGXFSZ: ": it wrote a larger file than a run may write",
            signal.SIGKILL: ": it may have used more memory than the host has",
        }.get(signal.Signals(-ended.code), "")
    else:
        ending = f"the engine exited with code {ended.code} and without a result"
    raise RunFailed(f"{ending}; its last output: {ended.reason or 'none'}", code="died")
