"""Context: what a job function may ask of its run. It is injected where a parameter is annotated with it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, overload

from holdfast.support.errors import InvalidArguments, RunFailed
from holdfast.support.validation import is_segment_name

if TYPE_CHECKING:
    from holdfast.artifacts.create import Content
    from holdfast.jobs.children import Child
    from holdfast.jobs.job import Job
    from holdfast.values.artifacts import Artifact

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Fence:
    """A token for the user's own conditional writes: a later attempt of the same run has a larger one."""

    run_id: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.run_id}:{self.attempt}"


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What a running job knows of its own run."""

    id: str
    job: str
    queue: str
    key: str | None
    tags: dict[str, str]
    attempt: int
    tries: int
    created_at: datetime
    started_at: datetime
    deadline_at: datetime | None
    again_of: str | None
    needed: tuple[str, ...] = ()
    """The runs that it waited for, in the order in which `after` named them."""
    parent_id: str | None = None
    """The pipeline that it belongs to, or the run that submitted it."""
    stage: str | None = None
    segment: str | None = None
    stage_version: str | None = None


class Context(ABC):
    """The run, from inside."""

    run: RunInfo
    log: logging.LoggerAdapter[logging.Logger]

    @property
    def attempt(self) -> int:
        return self.run.attempt

    @property
    def fence(self) -> Fence:
        return Fence(self.run.id, self.run.attempt)

    @property
    def needed(self) -> tuple[Any, ...]:
        """The results of what `after` named, in that order; None for one that ended without."""
        return ()

    @property
    @abstractmethod
    def cancelled(self) -> bool:
        """Whether the run should stop: it was cancelled, its time is up, or its lease is lost."""

    @abstractmethod
    def check(self) -> None:
        """Raise if the run should stop; a long loop calls it now and then."""

    @abstractmethod
    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `fn` and remember its result, or give back the result that an earlier attempt remembered.

        Both are equal: a result that would not come back from JSON as it went in fails the run, without another
        attempt. Annotate `fn` if it returns more than plain JSON. A step that fails is tried again as the
        job's Retry says. `fn` may be an async function: then await what this returns.
        """

    @abstractmethod
    def forget(self, name: str) -> None:
        """Forget the result of a step that has turned out to be useless, or raise StepNotFound.

        The next use of its name, in this attempt or a later one, calls its function again.
        """

    @abstractmethod
    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Tell how far the work is. Cheap: what is told too often is dropped, but never the last of an attempt."""

    @overload
    def artifact(  # type: ignore[overload-overlap]
        self, name: str, content: Callable[[Path], Coroutine[Any, Any, object]]
    ) -> Coroutine[Any, Any, Artifact]: ...
    @overload
    def artifact(self, name: str, content: Content) -> Artifact: ...
    @abstractmethod
    def artifact(self, name: str, content: Content) -> Any:
        """Keep a file with the run: bytes, text, a Path, or a function that is given a Path to write to.

        A function is called only where there is no such artifact yet, or one that is not as it was written. It may be
        an async function: then await what this returns.
        """

    @abstractmethod
    def finish(self, result: Any = None, *, connection: Any) -> None:
        """End this run well in a transaction of yours: its outcome and your rows are committed together, or neither is.

        `connection` is what `using(connection=…)` takes. Commit, then return: nothing can be written for the run any
        more, and what the function returns is ignored. LeaseLost if the run is no longer ours: then roll back. One
        that returns without having committed has failed.
        """

    @overload
    def segments(self, values: Mapping[str, T]) -> dict[str, T]: ...  # type: ignore[overload-overlap]
    @overload
    def segments(self, values: Iterable[T]) -> list[T]: ...
    def segments(self, values: Iterable[Any] | Mapping[str, Any]) -> list[Any] | dict[str, Any]:
        """What a stage returns for another to be split by: values in order, or by name. Names are checked."""
        if isinstance(values, Mapping):
            named = dict(values)
            for name in named:
                if not is_segment_name(name):
                    raise InvalidArguments(
                        f"{name!r} can't name a segment: a name has 1 to 200 characters, the last no space"
                    )
            return named
        if isinstance(values, str | bytes):
            raise InvalidArguments("segments are a list or a mapping of values, not text")
        return list(values)

    @abstractmethod
    def submit_child(self, job: Job[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Child[T]:
        """Submit a run that belongs to this one: a later attempt gets the same child, and cancelling this run stops it.

        Children are told apart by their order; `job.using(idempotency_key=…)` gives one a name of its own instead.
        """

    @overload
    def gather(self, *children: Child[T], return_exceptions: Literal[False] = False) -> list[T]: ...
    @overload
    def gather(self, *children: Child[T], return_exceptions: bool) -> list[T | RunFailed]: ...
    @abstractmethod
    def gather(self, *children: Child[Any], return_exceptions: bool = False) -> list[Any]:
        """The results of these children, when all have ended. Until then this attempt ends here and holds no worker;
        the run then begins anew: what its steps remember is not done again.

        A child that failed raises RunFailed, or is given as one with `return_exceptions`.
        """
