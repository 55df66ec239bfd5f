"""Inline: a context for a job that is called as a plain function. It remembers nothing."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.context import Context, RunInfo
from holdfast.retries import Retry

if TYPE_CHECKING:
    from holdfast.jobs import Job

P = ParamSpec("P")
T = TypeVar("T")


class InlineContext(Context):
    def __init__(self, job: Job[..., Any], *, now: datetime, retry: Retry) -> None:
        self.run = RunInfo(
            id="inline",
            job=job.name,
            queue=job.options.queue,
            key=None,
            tags={},
            attempt=1,
            tries=1,
            created_at=now,
            started_at=now,
            deadline_at=None,
            again_of=None,
        )
        self.log = logging.LoggerAdapter(logging.getLogger(f"holdfast.run.{job.name}"), {})
        self._retry = retry

    @property
    def cancelled(self) -> bool:
        return False

    def check(self) -> None:
        return None

    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        for left in range(self._retry.steps - 1, -1, -1):
            try:
                return fn(*args, **kwargs)
            except Exception as error:
                if not left or not self._retry.applies_to(error) or inspect.iscoroutinefunction(fn):
                    raise
        raise AssertionError

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        self.log.info("progress %s/%s %s", done, total, note)

    def artifact(self, name: str, content: bytes | str | Path) -> Any:
        return None
