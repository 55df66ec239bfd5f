"""The run log: log records made during a run are stored with it."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable

from holdfast.worker.context import RunContext

current: contextvars.ContextVar[RunContext | None] = contextvars.ContextVar("holdfast_run", default=None)


class RunLog(logging.Handler):
    """Gives the records made during a run to that run: the one whose context `find` gives."""

    def __init__(self, find: Callable[[], RunContext | None], *, level: int) -> None:
        super().__init__(level)
        self._find = find

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("holdfast.worker") and (context := self._find()) is not None:
            context.logged(record)
