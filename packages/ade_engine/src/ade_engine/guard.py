"""Guard: calls a configuration's code, names the function and the row in errors, and stops calls that take too long."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import InvalidOperation
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

from ade_engine.errors import CodeError, EngineError, LimitExceeded
from ade_engine.rules import Step


class BadValue(Exception):
    """The code refuses a value: the row is rejected, and the run continues."""


class TooSlow(BaseException):
    """One call took too long. A BaseException, so that the code's own `except Exception` does not catch it."""


class Guard:
    """Calls the code of one configuration. With `seconds=0` a call may take any time."""

    def __init__(self, folder: Path, *, seconds: float) -> None:
        self.folder = folder
        self.seconds = seconds
        self.started = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Interrupt calls that take too long inside this `with` block. Works only in the main thread."""
        if not self.seconds:
            yield
            return
        previous = signal.signal(signal.SIGALRM, self.tick)
        interval = min(0.5, self.seconds / 4)
        signal.setitimer(signal.ITIMER_REAL, interval, interval)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, previous)

    def tick(self, number: int, frame: FrameType | None) -> None:
        if self.started and monotonic() - self.started > self.seconds:
            raise TooSlow

    def call(
        self, kind: str, field: str | None, step: Step, location: tuple[str, int] | None, *arguments: object
    ) -> Any:
        """Call the code and return its result; raise BadValue for a ValueError, CodeError for any other exception."""
        self.started = monotonic()
        try:
            return step.function(*arguments)
        except (ValueError, InvalidOperation) as error:
            if kind != "detector":
                raise BadValue(brief(error)) from error
            raise self.failed(error, kind, field, step, location) from error
        except (KeyboardInterrupt, EngineError):
            raise
        except BaseException as error:
            self.started = 0.0
            raise self.failed(error, kind, field, step, location) from error
        finally:
            self.started = 0.0

    def failed(
        self, error: BaseException, kind: str, field: str | None, step: Step, location: tuple[str, int] | None
    ) -> EngineError:
        name = f"{kind} {step.name}" + (f" of field {field}" if field else "")
        where = f", in row {location[1]} of sheet {location[0]!r}" if location else ""
        details = {
            "kind": kind,
            "function": step.name,
            "field": field,
            "at": self.line_of(error),
            "sheet": location and location[0],
            "row": location and location[1],
        }
        if isinstance(error, TooSlow):
            return CodeError("code_too_slow", f"{name} took longer than {self.seconds:g} s{where}", **details)
        if isinstance(error, MemoryError):
            return LimitExceeded("limit_memory", f"{name} ran out of memory{where}", **details)
        return CodeError("code_raised", f"{name} raised {brief(error)}{where}", **details)

    def line_of(self, error: BaseException) -> str | None:
        """Return the last line of the traceback that is in the configuration's own files: `rules.py:12`."""
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            path = Path(frame.filename)
            if path.is_relative_to(self.folder):
                return f"{path.relative_to(self.folder)}:{frame.lineno}"
        return None


def brief(error: BaseException) -> str:
    """Describe an error in one short line."""
    try:
        message = " ".join(str(error).split())[:300]
    except Exception:
        message = ""
    if isinstance(error, ValueError) and message:
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
