"""Context: what a running job uses as `ctx`. Every write checks that the run's lease is still ours."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, ParamSpec, TypeVar

from holdfast.artifacts import create
from holdfast.artifacts.create import Content
from holdfast.jobs import children
from holdfast.jobs.arguments import Shape, shape_of
from holdfast.jobs.children import Child
from holdfast.jobs.context import Context, RunInfo
from holdfast.jobs.job import Job
from holdfast.runs.claim import ClaimedRun
from holdfast.runs.submission import CHILD, read_depends_on, tags_of
from holdfast.support import json_text, telemetry, threads
from holdfast.support.errors import Cancelled, DuplicateStep, LeaseLost, NotSerialisable, StepNotFound, TooLarge
from holdfast.support.validation import MAX_KEY, check_name
from holdfast.values.retries import Retry
from holdfast.values.runs import Result, Step
from holdfast.worker.run_services import RunServices

P = ParamSpec("P")
T = TypeVar("T")


class ResultNotStorable(NotSerialisable):
    """Raised if a step's result or the argument of `ctx.finish` can't be stored; the run fails without a retry."""


@contextlib.contextmanager
def _without_retry() -> Iterator[None]:
    """Turn errors of encoding into ResultNotStorable."""
    try:
        yield
    except (NotSerialisable, TooLarge) as error:
        raise ResultNotStorable(str(error)) from None


class RunContext(Context):
    def __init__(
        self,
        claimed: ClaimedRun,
        services: RunServices,
        *,
        job: Job[..., Any],
        retry: Retry,
        max_result_bytes: int,
        first: bool,
    ) -> None:
        self._claimed, self._job = claimed, job
        self._services, self._retry, self._max_result_bytes = services, retry, max_result_bytes
        self.finishing = False
        """Whether the job has called ctx.finish, committed or not."""
        self._remembered: dict[str, str] | None = {} if first else None
        self._used: set[str] = set()
        self._lock = threading.Lock()
        self._progress_at: float | None = None
        self._latest_progress: tuple[float, float | None, str] | None = None
        self._numbers = itertools.count(1)

    @cached_property
    def run(self) -> RunInfo:  # type: ignore[override]
        return info_of(self._claimed)

    @cached_property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:  # type: ignore[override]
        return logging.LoggerAdapter(logging.getLogger(f"holdfast.run.{self.run.job}"), {})

    @cached_property
    def dependencies(self) -> tuple[Any, ...]:
        ids = self.run.depends_on
        values = {result.run_id: self._value(result) for result in self._services.results(ids)} if ids else {}
        return tuple(values.get(run_id) for run_id in ids)

    def _value(self, ended: Result) -> Any:
        """Return a run's result, decoded by its job's return annotation if the job is known here."""
        job = None if ended.job is None else self._job.runtime.jobs.get(ended.job)
        return ended.value if job is None or ended.result is None else job.arguments.decode_result(ended.result)

    def inputs(self, what: str, names: Sequence[str]) -> dict[str, str]:
        """Return the inputs of this run by name."""
        return self._services.inputs(what, names)

    def submit_child(self, job: Job[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Child[T]:
        self.check()
        name, options = children.named(job, self._numbers)
        now = self._services.now()
        submission = job.submission(job.runtime.ids.new(now), options, args, kwargs, now=now)
        return Child(self._services.submit_child(submission, name), name, job, submission.key)

    def gather(self, *children_: Child[Any], return_exceptions: bool = False) -> list[Any]:
        children.checked(children_)
        results = self._services.results([child.id for child in children_])
        policy, entry = self._claimed.policy, self._claimed.lease.entry
        kept = entry.key if policy.key_order == "strict" and policy.key_limit == 1 else None
        return children.gathered(children_, results, return_exceptions=return_exceptions, kept=kept)

    @property
    def cancelled(self) -> bool:
        return self._services.stopped() is not None

    def check(self) -> None:
        match self._services.stopped():
            case None:
                return
            case "lost":
                raise LeaseLost(f"run {self.run.id}: claim {self.run.claim} has lost its lease")
            case reason:
                raise Cancelled(f"run {self.run.id} must stop: {reason}")

    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if inspect.iscoroutinefunction(fn):
            return self._astep(name, fn, args, kwargs)  # type: ignore[return-value]
        shape = shape_of(fn)
        stored = self._recall(name)
        if stored is not None:
            return shape.decode(stored)  # type: ignore[no-any-return]
        with telemetry.step(name):
            started_at = self._services.now()
            for number in range(1, self._retry.step_attempts + 1):
                self.check()
                try:
                    value = fn(*args, **kwargs)
                except Exception as error:
                    self._services.wait(self._before_next(name, number, error, started_at).total_seconds())
                    continue
                return self._remember(name, shape, value, number, started_at)  # type: ignore[no-any-return]
        raise AssertionError

    async def _astep(self, name: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        import asyncio

        shape = shape_of(fn)
        stored = await threads.calls.run(self._recall, name)
        if stored is not None:
            return shape.decode(stored)
        with telemetry.step(name):
            started_at = self._services.now()
            for number in range(1, self._retry.step_attempts + 1):
                self.check()
                try:
                    value = await fn(*args, **kwargs)
                except Exception as error:
                    await asyncio.sleep(self._before_next(name, number, error, started_at).total_seconds())
                    continue
                return await threads.calls.run(self._remember, name, shape, value, number, started_at)
        raise AssertionError

    def forget(self, name: str) -> None:
        check_name(name, what="a step's name", max_length=MAX_KEY)
        with self._lock:
            if not self._services.forget(name):
                raise StepNotFound(
                    f"run {self.run.id} has no stored step {name!r}: it has not finished or was forgotten"
                )
            self._used.discard(name)
            if self._remembered is not None:
                self._remembered.pop(name, None)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        now = self._services.now().timestamp()
        if self._progress_at is not None and now - self._progress_at < 0.5 and done != total:
            self._latest_progress = (done, total, note)
            return
        self._progress_at, self._latest_progress = now, None
        numbers = json_text.load(json_text.dump({"done": done, "total": total}, what="progress"))
        self._services.record_event("PROGRESS", numbers | {"note": str(note)})

    def flush_progress(self) -> None:
        """Record the latest progress, if it was skipped because it came too soon after the previous one."""
        if self._latest_progress is not None:
            self._progress_at = None
            self.progress(*self._latest_progress)

    def artifact(self, name: str, content: Content) -> Any:
        return create.artifact(self._services, name, content)

    def finish(self, result: Any = None, *, connection: Any) -> None:
        self.check()
        with _without_retry():
            text, _ = self._job.arguments.encode_finish(result, max_bytes=self._max_result_bytes)
        self.finishing = True
        self._services.finish(text, connection)

    def logged(self, record: logging.LogRecord) -> None:
        """Store a log record with the run."""
        self._services.record_event(
            "LOG", {"level": record.levelname, "logger": record.name, "message": record.getMessage()[:10_000]}
        )

    def _recall(self, name: str) -> str | None:
        check_name(name, what="a step's name", max_length=MAX_KEY)
        with self._lock:
            if name in self._used:
                raise DuplicateStep(f"step {name!r} was used before in this run; give every step a different name")
            self._used.add(name)
            if self._remembered is None:
                self._remembered = self._services.steps()
            return self._remembered.get(name)

    def _remember(self, name: str, shape: Shape, value: Any, attempts: int, started_at: datetime) -> Any:
        """Store a step's result. Return the value as a later attempt would read it."""
        with _without_retry():
            text, again = shape.encode(value, what=f"the result of step {name!r}", max_bytes=self._max_result_bytes)
        finished_at = self._services.now()
        self._services.remember(
            Step(
                name=name,
                result=text,
                claim=self.run.claim,
                attempts=attempts,
                started_at=started_at,
                finished_at=finished_at,
            )
        )
        return again

    def _before_next(self, name: str, number: int, error: Exception, started_at: datetime) -> Any:
        """Return how long to wait before the step is retried. If it is not retried, raise the error."""
        if number == 1:
            # A finished step's row has its start. This step is not finished, so its start is recorded as an event.
            self._services.record_event("STEP_STARTED", {"step": name}, at=started_at)
        if (
            number == self._retry.step_attempts
            or not self._retry.applies_to(error)
            or isinstance(error, LeaseLost | Cancelled)
        ):
            raise error
        self._services.record_event(
            "STEP_RETRIED", {"step": name, "try": number, "error": f"{type(error).__name__}: {error}"[:2000]}
        )
        return self._retry.wait_before(number + 1, fraction=self._services.fraction())


def info_of(claimed: ClaimedRun) -> RunInfo:
    entry = claimed.lease.entry
    return RunInfo(
        id=entry.run_id,
        job=entry.job,
        queue=entry.queue,
        key=entry.key,
        tags=tags_of(claimed.tags),
        claim=entry.claim,
        attempt=entry.attempt,
        created_at=claimed.created_at,
        started_at=claimed.lease.started_at,
        deadline_at=claimed.lease.deadline_at,
        again_of=claimed.again_of,
        depends_on=tuple(one for one in read_depends_on(claimed.depends_on) if one is not None),
        parent_id=claimed.parent_id,
        **_in_pipeline(claimed),
    )


def _in_pipeline(claimed: ClaimedRun) -> dict[str, str | None]:
    if claimed.stage is None or claimed.stage == CHILD:
        return {}
    return {
        "stage": claimed.stage,
        "segment": claimed.segment or None,
        "stage_version": json_text.load(claimed.args)["version"],
    }


def retry_of(job: Job[..., Any], claimed: ClaimedRun) -> Retry:
    """Return the stored retry policy with the error classes of the code, which are not stored."""
    code = job.options.policy.retry
    return _with_errors(claimed.policy.retry, code.on, code.never_on)


@lru_cache(maxsize=1024)
def _with_errors(retry: Retry, on: tuple[type[BaseException], ...], never_on: tuple[type[BaseException], ...]) -> Retry:
    return replace(retry, on=on, never_on=never_on)
