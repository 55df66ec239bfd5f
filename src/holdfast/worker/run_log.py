"""Run log: stores log records that are emitted during a run as events of the run."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable

from holdfast.worker.context import RunContext

current: contextvars.ContextVar[RunContext | None] = contextvars.ContextVar("holdfast_run_view", default=None)


class RunLog(logging.Handler):
    """Passes each log record to the current run, whose context `find` returns."""

    def __init__(self, find: Callable[[], RunContext | None], *, level: int) -> None:
        super().__init__(level)
        self._find = find

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("holdfast.worker") and (context := self._find()) is not None:
            context.logged(record)
