"""Context: gives a job function access to its run. It is passed to the parameter that is annotated with it."""

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
    """A fencing token for your own conditional writes. The number grows with every claim of the run."""

    run_id: str
    claim: int

    def __str__(self) -> str:
        return f"{self.run_id}:{self.claim}"


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """A run, as it was when its function started."""

    id: str
    job: str
    queue: str
    key: str | None
    tags: dict[str, str]
    claim: int
    attempt: int
    created_at: datetime
    started_at: datetime
    deadline_at: datetime | None
    again_of: str | None
    depends_on: tuple[str, ...] = ()
    """The runs that it depended on, in the order of `depends_on`."""
    parent_id: str | None = None
    """The pipeline that the run belongs to, or the run that submitted it."""
    stage: str | None = None
    segment: str | None = None
    stage_version: str | None = None


class Context(ABC):
    """The current run, as its function sees it."""

    run: RunInfo
    log: logging.LoggerAdapter[logging.Logger]

    @property
    def attempt(self) -> int:
        """Which attempt of the run this is, from 1 to `max_attempts`.

        A release uses up no attempt, and neither does a takeover with on_crash="requeue".
        """
        return self.run.attempt

    @property
    def fence(self) -> Fence:
        return Fence(self.run.id, self.run.claim)

    @property
    def dependencies(self) -> tuple[Any, ...]:
        """The results of the dependencies, in the order of `depends_on`; None for one that has no result."""
        return ()

    @property
    @abstractmethod
    def cancelled(self) -> bool:
        """Whether the run should stop: it was cancelled, has timed out, or has lost its lease."""

    @abstractmethod
    def check(self) -> None:
        """Raise if the run should stop. Call it regularly in a long loop."""

    @abstractmethod
    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `fn` and store its result, or return the result that an earlier attempt stored.

        Both values are equal: if storing a result as JSON would change it, the run fails without a retry. Annotate
        `fn` if it returns more than plain JSON. A failed step is retried as the job's Retry says. If `fn` is async,
        await the returned value.
        """

    @abstractmethod
    def forget(self, name: str) -> None:
        """Delete the stored result of a step, or raise StepNotFound.

        The next step of that name, in this attempt or a later one, calls its function again.
        """

    @abstractmethod
    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        """Report progress. Frequent calls are cheap: surplus reports are dropped, but never the last of an attempt."""

    @overload
    def artifact(  # type: ignore[overload-overlap]
        self, name: str, content: Callable[[Path], Coroutine[Any, Any, object]]
    ) -> Coroutine[Any, Any, Artifact]: ...
    @overload
    def artifact(self, name: str, content: Content) -> Artifact: ...
    @abstractmethod
    def artifact(self, name: str, content: Content) -> Any:
        """Publish a file of the run: bytes, text, a Path, or a function that writes to the Path it receives.

        The function is called only if there is no intact artifact of that name. If it is async, await the returned
        value.
        """

    @abstractmethod
    def finish(self, result: Any = None, *, connection: Any) -> None:
        """Mark this run as succeeded in your own transaction, so that its outcome and your rows commit together.

        `connection` is the same as for `using(connection=…)`. Commit before you return, or the run fails with
        `not_committed`. After this call nothing more can be written for the run, and the return value of the function
        is ignored. It raises LeaseLost if the lease is lost; then roll back.
        """

    @overload
    def segments(self, values: Mapping[str, T]) -> dict[str, T]: ...  # type: ignore[overload-overlap]
    @overload
    def segments(self, values: Iterable[T]) -> list[T]: ...
    def segments(self, values: Iterable[Any] | Mapping[str, Any]) -> list[Any] | dict[str, Any]:
        """Check the names, and return the values that a later stage is split by, as a list or by name."""
        if isinstance(values, Mapping):
            named = dict(values)
            for name in named:
                if not is_segment_name(name):
                    raise InvalidArguments(
                        f"{name!r} can't name a segment: a name has 1 to 200 characters and does not end in a space"
                    )
            return named
        if isinstance(values, str | bytes):
            raise InvalidArguments("segments must be a list or a mapping of values, not text")
        return list(values)

    @abstractmethod
    def submit_child(self, job: Job[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Child[T]:
        """Submit a child of this run. A later attempt gets the same child, and cancelling this run cancels it.

        Children are identified by their order, or by a name that you set with `job.using(idempotency_key=…)`.
        """

    @overload
    def gather(self, *children: Child[T], return_exceptions: Literal[False] = False) -> list[T]: ...
    @overload
    def gather(self, *children: Child[T], return_exceptions: bool) -> list[T | RunFailed]: ...
    @abstractmethod
    def gather(self, *children: Child[Any], return_exceptions: bool = False) -> list[Any]:
        """Return the results of these children once all have ended.

        If some have not, this attempt ends here and frees its worker. When all have ended, the run starts again; its
        stored steps are not executed again. A failed child raises RunFailed, or is returned as RunFailed with
        `return_exceptions`.
        """
