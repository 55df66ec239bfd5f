"""The decorator behind `@hf.job()`: turns a function into a job."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from holdfast.jobs.context import Context
from holdfast.jobs.importing import SCRIPT
from holdfast.jobs.job import Isolation, Job
from holdfast.jobs.options import Options
from holdfast.jobs.submitter import Submitter
from holdfast.support.errors import InvalidPolicy
from holdfast.support.validation import check_name

P = ParamSpec("P")
R = TypeVar("R")


class Decorator:
    """The decorator that `hf.job(…)` returns; it turns a function into a Job with the same types."""

    def __init__(
        self, make: Callable[[Callable[..., Any]], Job[..., Any]], *, register: Callable[[Job[..., Any]], None]
    ) -> None:
        self.make, self._register = make, register

    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Job[P, R]: ...
    def __call__(self, fn: Callable[..., Any], /) -> Job[..., Any]:
        job = self.make(fn)
        self._register(job)
        return job


def decorator(submitter: Submitter, *, name: str | None, options: Options, isolation: Isolation | None) -> Decorator:
    """Return a decorator that turns a function into a job and registers it."""

    def make(fn: Callable[..., Any]) -> Job[..., Any]:
        chosen = chosen_name(fn, name)
        how = isolation_of(fn, isolation, name=chosen)
        return Job(submitter, fn, name=chosen, options=options, isolation=how)

    return Decorator(make, register=submitter.runtime.jobs.add)


def chosen_name(fn: Callable[..., Any], name: str | None) -> str:
    """Return the name of the job for a function; raise InvalidPolicy if it is not a function or has no name."""
    if isinstance(fn, Job):
        raise InvalidPolicy(f"{fn.name} is already a job; to schedule a job, write @hf.schedule(…) above @hf.job(…)")
    if not callable(fn):
        raise InvalidPolicy(f"{fn!r} is not a function, so it can't be a job")
    if name is None and not hasattr(fn, "__qualname__"):
        raise InvalidPolicy(f"{fn!r} has no name of its own; pass name=…")
    chosen = name_of(fn) if name is None else name
    check_name(chosen, what="a job's name")
    return chosen


def name_of(fn: Callable[..., Any]) -> str:
    """Return the dotted path of a function; functions of a script are named after its file, not `__main__`."""
    module = fn.__module__
    if module in ("__main__", SCRIPT):
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        module = spec.name if spec is not None else Path(getattr(main, "__file__", None) or "main").stem
    return f"{module}.{fn.__qualname__}".replace(".<locals>", "")


def isolation_of(fn: Callable[..., Any], isolation: Isolation | None, *, name: str) -> Isolation:
    is_async = inspect.iscoroutinefunction(fn)
    if isolation is None:
        return "async" if is_async else "thread"
    if isolation not in ("thread", "async", "process"):
        raise InvalidPolicy(f"job {name}: isolation must be 'thread', 'async' or 'process', not {isolation!r}")
    if (isolation == "async") != is_async and isolation != "process":
        raise InvalidPolicy(
            f"job {name}: isolation={isolation!r} does not fit {'an async' if is_async else 'a plain'} function"
        )
    return isolation
