"""Context, as a running job sees it: each write goes through the fence."""

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
from holdfast.runs.claim import Claim
from holdfast.runs.submission import CHILD, needed_of, tags_of
from holdfast.support import json_text, telemetry, threads
from holdfast.support.errors import Cancelled, DuplicateStep, LeaseLost, NotSerialisable, StepNotFound, TooLarge
from holdfast.support.validation import MAX_KEY, check_name
from holdfast.values.retries import Retry
from holdfast.values.runs import Result, Step
from holdfast.worker.run_services import RunServices

P = ParamSpec("P")
T = TypeVar("T")


class ResultNotStorable(NotSerialisable):
    """What a step returned, or `ctx.finish` was given, can't be stored: the run fails and is not tried again."""


@contextlib.contextmanager
def _for_good() -> Iterator[None]:
    try:
        yield
    except (NotSerialisable, TooLarge) as error:
        raise ResultNotStorable(str(error)) from None


class RunContext(Context):
    def __init__(
        self, claim: Claim, desk: RunServices, *, job: Job[..., Any], retry: Retry, max_result_bytes: int, first: bool
    ) -> None:
        self._claim, self._job = claim, job
        self._desk, self._retry, self._max_result_bytes = desk, retry, max_result_bytes
        self.finishing = False
        """Whether the run's end was written in a transaction of the job's own, be that committed or not."""
        self._remembered: dict[str, str] | None = {} if first else None
        self._used: set[str] = set()
        self._lock = threading.Lock()
        self._told_at: float | None = None
        self._untold: tuple[float, float | None, str] | None = None
        self._numbers = itertools.count(1)

    @cached_property
    def run(self) -> RunInfo:  # type: ignore[override]
        return info_of(self._claim)

    @cached_property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:  # type: ignore[override]
        return logging.LoggerAdapter(logging.getLogger(f"holdfast.run.{self.run.job}"), {})

    @cached_property
    def needed(self) -> tuple[Any, ...]:
        ids = self.run.needed
        found = {result.run_id: self._value(result) for result in self._desk.results(ids)} if ids else {}
        return tuple(found.get(run_id) for run_id in ids)

    def _value(self, ended: Result) -> Any:
        """What a run came to, as its job's annotation says where that job is known here."""
        job = None if ended.job is None else self._job.hf.jobs.get(ended.job)
        return ended.value if job is None or ended.result is None else job.arguments.decode_result(ended.result)

    def inputs(self, what: str, names: Sequence[str]) -> dict[str, str]:
        """What this run is given when it starts."""
        return self._desk.inputs(what, names)

    def submit_child(self, job: Job[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Child[T]:
        self.check()
        name, options = children.named(job, self._numbers)
        now = self._desk.now()
        submission = job.submission(job.hf.ids.new(now), options, args, kwargs, now=now)
        return Child(self._desk.submit_child(submission, name), name, job, submission.key)

    def gather(self, *children_: Child[Any], return_exceptions: bool = False) -> list[Any]:
        children.checked(children_)
        found = self._desk.results([child.id for child in children_])
        policy, ticket = self._claim.policy, self._claim.lease.ticket
        kept = ticket.key if policy.key_order == "strict" and policy.key_limit == 1 else None
        return children.gathered(children_, found, return_exceptions=return_exceptions, kept=kept)

    @property
    def cancelled(self) -> bool:
        return self._desk.stopped() is not None

    def check(self) -> None:
        match self._desk.stopped():
            case None:
                return
            case "lost":
                raise LeaseLost(f"run {self.run.id}: attempt {self.run.attempt} no longer holds its lease")
            case stopped:
                raise Cancelled(f"run {self.run.id} was told to stop: {stopped}")

    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        if inspect.iscoroutinefunction(fn):
            return self._astep(name, fn, args, kwargs)  # type: ignore[return-value]
        shape = shape_of(fn)
        found = self._recall(name)
        if found is not None:
            return shape.decode(found)  # type: ignore[no-any-return]
        with telemetry.step(name):
            started_at = self._desk.now()
            for number in range(1, self._retry.steps + 1):
                self.check()
                try:
                    value = fn(*args, **kwargs)
                except Exception as error:
                    self._desk.wait(self._before_next(name, number, error, started_at).total_seconds())
                    continue
                return self._remember(name, shape, value, number, started_at)  # type: ignore[no-any-return]
        raise AssertionError

    async def _astep(self, name: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        import asyncio

        shape = shape_of(fn)
        found = await threads.calls.run(self._recall, name)
        if found is not None:
            return shape.decode(found)
        with telemetry.step(name):
            started_at = self._desk.now()
            for number in range(1, self._retry.steps + 1):
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
            if not self._desk.forget(name):
                raise StepNotFound(f"run {self.run.id} remembers no step {name!r}: it has not ended, or is forgotten")
            self._used.discard(name)
            if self._remembered is not None:
                self._remembered.pop(name, None)

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        now = self._desk.now().timestamp()
        if self._told_at is not None and now - self._told_at < 0.5 and done != total:
            self._untold = (done, total, note)
            return
        self._told_at, self._untold = now, None
        numbers = json_text.load(json_text.dump({"done": done, "total": total}, what="progress"))
        self._desk.tell("PROGRESS", numbers | {"note": str(note)})

    def settle(self) -> None:
        """The function has returned or raised: tell how far it came, if that was dropped."""
        if self._untold is not None:
            self._told_at = None
            self.progress(*self._untold)

    def artifact(self, name: str, content: Content) -> Any:
        return create.artifact(self._desk, name, content)

    def finish(self, result: Any = None, *, connection: Any) -> None:
        self.check()
        with _for_good():
            text, _ = self._job.arguments.encode_finish(result, max_bytes=self._max_result_bytes)
        self.finishing = True
        self._desk.finish(text, connection)

    def logged(self, record: logging.LogRecord) -> None:
        """Keep a log record with the run."""
        self._desk.tell(
            "LOG", {"level": record.levelname, "logger": record.name, "message": record.getMessage()[:10_000]}
        )

    def _recall(self, name: str) -> str | None:
        check_name(name, what="a step's name", max_length=MAX_KEY)
        with self._lock:
            if name in self._used:
                raise DuplicateStep(f"step {name!r} was used before in this run; every step needs a name of its own")
            self._used.add(name)
            if self._remembered is None:
                self._remembered = self._desk.steps()
            return self._remembered.get(name)

    def _remember(self, name: str, shape: Shape, value: Any, tries: int, started_at: datetime) -> Any:
        """Store a step's result; the value as a later attempt gets it."""
        with _for_good():
            text, again = shape.encode(value, what=f"the result of step {name!r}", max_bytes=self._max_result_bytes)
        finished_at = self._desk.now()
        self._desk.remember(
            Step(
                name=name,
                result=text,
                attempt=self.run.attempt,
                tries=tries,
                started_at=started_at,
                finished_at=finished_at,
            )
        )
        return again

    def _before_next(self, name: str, number: int, error: Exception, started_at: datetime) -> Any:
        """How long to wait before the step is tried again; raises when it is not."""
        if number == 1:
            # A step that succeeds at once has a row that tells its start; that row would come too late here.
            self._desk.tell("STEP_STARTED", {"step": name}, at=started_at)
        if number == self._retry.steps or not self._retry.applies_to(error) or isinstance(error, LeaseLost | Cancelled):
            raise error
        self._desk.tell(
            "STEP_RETRIED", {"step": name, "try": number, "error": f"{type(error).__name__}: {error}"[:2000]}
        )
        return self._retry.wait_before(number + 1, fraction=self._desk.fraction())


def info_of(claim: Claim) -> RunInfo:
    ticket = claim.lease.ticket
    return RunInfo(
        id=ticket.run_id,
        job=ticket.job,
        queue=ticket.queue,
        key=ticket.key,
        tags=tags_of(claim.tags),
        attempt=ticket.attempt,
        tries=ticket.tries,
        created_at=claim.created_at,
        started_at=claim.lease.started_at,
        deadline_at=claim.lease.deadline_at,
        again_of=claim.again_of,
        needed=tuple(one for one in needed_of(claim.needed) if one is not None),
        parent_id=claim.parent_id,
        **_in_pipeline(claim),
    )


def _in_pipeline(claim: Claim) -> dict[str, str | None]:
    if claim.stage is None or claim.stage == CHILD:
        return {}
    return {
        "stage": claim.stage,
        "segment": claim.segment or None,
        "stage_version": json_text.load(claim.args)["version"],
    }


def retry_of(job: Job[..., Any], claim: Claim) -> Retry:
    """The stored times with the code's error classes."""
    code = job.options.policy.retry
    return _with_errors(claim.policy.retry, code.on, code.never_on)


@lru_cache(maxsize=1024)
def _with_errors(retry: Retry, on: tuple[type[BaseException], ...], never_on: tuple[type[BaseException], ...]) -> Retry:
    return replace(retry, on=on, never_on=never_on)
