"""The run log: log records made during a run are stored with it."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable

from holdfast.worker.context import RunContext

current: contextvars.ContextVar[RunContext | None] = contextvars.ContextVar("holdfast_run", default=None)


class RunLog(logging.Handler):
    """Gives the records made during a run to that run; `ours` tells runs of this worker from another's beside it."""

    def __init__(self, ours: Callable[[str, int], bool], *, level: int) -> None:
        super().__init__(level)
        self._ours = ours

    def emit(self, record: logging.LogRecord) -> None:
        context = current.get()
        if context is None or record.name.startswith("holdfast.worker"):
            return
        if self._ours(context.run.id, context.run.attempt):
            context.logged(record)
