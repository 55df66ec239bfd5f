"""Guard: every call of a configuration's code goes through here, so that its errors have a name, a place and an end."""

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
    """The code says that a value is bad: the row is rejected, the run goes on."""


class TooSlow(BaseException):
    """One call took too long. Not an Exception, so that the code's own `except Exception` lets it pass."""


class Guard:
    """Calls the code of one configuration. `seconds` = 0: no call is too slow."""

    def __init__(self, folder: Path, *, seconds: float) -> None:
        self.folder = folder
        self.seconds = seconds
        self.started = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While this lasts, a call that takes too long is stopped from within. Main thread only."""
        if not self.seconds:
            yield
            return
        before = signal.signal(signal.SIGALRM, self.tick)
        pace = min(0.5, self.seconds / 4)
        signal.setitimer(signal.ITIMER_REAL, pace, pace)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def tick(self, number: int, frame: FrameType | None) -> None:
        if self.started and monotonic() - self.started > self.seconds:
            raise TooSlow

    def call(self, what: str, field: str | None, step: Step, place: tuple[str, int] | None, *arguments: object) -> Any:
        """The code's answer; BadValue if it raised ValueError; CodeError with its name and place for anything else."""
        self.started = monotonic()
        try:
            return step.function(*arguments)
        except (ValueError, InvalidOperation) as error:
            if what != "detector":
                raise BadValue(brief(error)) from error
            raise self.failed(error, what, field, step, place) from error
        except (KeyboardInterrupt, EngineError):
            raise
        except BaseException as error:
            self.started = 0.0
            raise self.failed(error, what, field, step, place) from error
        finally:
            self.started = 0.0

    def failed(
        self, error: BaseException, what: str, field: str | None, step: Step, place: tuple[str, int] | None
    ) -> EngineError:
        name = f"{what} {step.name}" + (f" of field {field}" if field else "")
        where = f", in row {place[1]} of sheet {place[0]!r}" if place else ""
        details = {
            "kind": what,
            "function": step.name,
            "field": field,
            "at": self.line_of(error),
            "sheet": place and place[0],
            "row": place and place[1],
        }
        if isinstance(error, TooSlow):
            return CodeError("code_too_slow", f"{name} took longer than {self.seconds:g} s{where}", **details)
        if isinstance(error, MemoryError):
            return LimitExceeded("limit_memory", f"{name} used up the memory{where}", **details)
        return CodeError("code_raised", f"{name} raised {brief(error)}{where}", **details)

    def line_of(self, error: BaseException) -> str | None:
        """The last line of the configuration's own files in the traceback: `rules.py:12`."""
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            path = Path(frame.filename)
            if path.is_relative_to(self.folder):
                return f"{path.relative_to(self.folder)}:{frame.lineno}"
        return None


def brief(error: BaseException) -> str:
    """An error in one short line."""
    try:
        words = " ".join(str(error).split())[:300]
    except Exception:
        words = ""
    if isinstance(error, ValueError) and words:
        return words
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
