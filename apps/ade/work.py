"""Work: one execution of the engine for one document, from an empty folder to its output files."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from apps.ade import process, telling
from apps.ade.installing import python_of
from apps.ade.process import Ended, Limits, TookTooLong
from apps.ade.telling import Event

PREVIEW = Path(__file__).with_name("preview.py")
OUTPUTS = ("output.xlsx", "report.json")
MOST_REPORT = 20_000_000

Heard = Callable[[Event], None]


class RunFailed(Exception):
    """The engine came to no result; `code` is its own word for why."""

    def __init__(self, message: str, *, code: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a run has to do: the input lies in `place`, beside the configuration's folder."""

    place: Path
    environment: Path
    name: str
    limits: Limits
    grace: timedelta

    @property
    def input(self) -> Path:
        return self.place / "input"

    @property
    def configuration(self) -> Path:
        return self.place / "configuration"

    @property
    def output(self) -> Path:
        return self.place / "output"

    def outputs(self) -> list[Path]:
        """What the engine has left, with its final name: plain files only, wherever a link may lead."""
        found = [self.output / name for name in OUTPUTS]
        return [file for file in found if file.is_file() and not file.is_symlink() and file.stat().st_size]

    def do(self, heard: Heard) -> Event:
        """Run the engine; its last event, or RunFailed with a reason in plain words."""
        last: list[Event] = []

        def on_line(line: bytes) -> None:
            event = telling.event_of(line)
            if event is not None:
                last[:] = [event]
                heard(event)

        try:
            ended = self._execute(
                [
                    *("-m", "ade_engine", "run", "--config", self.configuration, "--input", self.input),
                    *("--output", self.output, "--name", self.name, "--max-output-bytes", str(self.limits.file_size)),
                ],
                on_line,
            )
        except TookTooLong:
            raise RunFailed(
                f"the run took longer than {self.limits.seconds:g} s (ADE_RUN_TIMEOUT_SECONDS): "
                "its engine was stopped, with all that it had started",
                code="timed_out",
            ) from None
        return _result(ended, last[-1] if last else None)

    def preview(self) -> Path | None:
        """The first rows of each sheet as JSON, read where nothing else can be reached; None if that does not work."""
        made = self.place / "preview.json"
        try:
            ended = self._execute([PREVIEW, self.output / "output.xlsx", made], lambda line: None, more=[PREVIEW])
        except TookTooLong:
            return None
        return made if ended.code == 0 and made.is_file() and not made.is_symlink() else None

    def _execute(
        self, words: list[str | Path], on_line: Callable[[bytes], None], more: list[Path] | None = None
    ) -> Ended:
        return process.execute(
            [python_of(self.environment), "-I", *words],
            folder=self.place,
            reads=[self.environment, *(more or [])],
            limits=self.limits,
            grace=self.grace,
            on_line=on_line,
        )


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
