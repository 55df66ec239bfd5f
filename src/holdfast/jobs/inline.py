"""Inline: the context of a job that is called as a plain function. It stores nothing."""

from __future__ import annotations

import hashlib
import inspect
import io
import itertools
import logging
import shutil
import tempfile
import weakref
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.artifacts import create
from holdfast.artifacts.backends.base import Measured
from holdfast.artifacts.backends.local import LocalFolder
from holdfast.artifacts.create import Content
from holdfast.jobs import children
from holdfast.jobs.arguments import shape_of
from holdfast.jobs.children import Child
from holdfast.jobs.context import Context, RunInfo
from holdfast.jobs.importing import refuse_import
from holdfast.support.errors import RunFailed
from holdfast.support.validation import MAX_KEY, check_name
from holdfast.values.artifacts import Artifact
from holdfast.values.retries import Retry

if TYPE_CHECKING:
    from holdfast.jobs.job import Job

P = ParamSpec("P")
T = TypeVar("T")


def call_inline(job: Job[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a job's function in the current thread, without a run. Its result is checked like that of a run."""
    refuse_import(f"runs {job.name}")
    given = job.arguments.named(args, kwargs)
    if job.arguments.context_name is not None:
        now = job.runtime.clock.now()
        given[job.arguments.context_name] = InlineContext(job, now=now, retry=job.options.policy.retry)
    value = job.fn(**given)
    return _acalled(job, value) if inspect.iscoroutine(value) else _called(job, value)


def _called(job: Job[..., Any], value: Any) -> Any:
    return job.encode_result(value, max_bytes=job.runtime.settings.max_result_bytes)[1]


async def _acalled(job: Job[..., Any], value: Awaitable[Any]) -> Any:
    return _called(job, await value)


class InlineContext(Context):
    def __init__(self, job: Job[..., Any], *, now: datetime, retry: Retry) -> None:
        self.run = RunInfo(
            id="inline",
            job=job.name,
            queue=job.options.queue,
            key=None,
            tags={},
            claim=1,
            attempt=1,
            created_at=now,
            started_at=now,
            deadline_at=None,
            again_of=None,
        )
        self.log = logging.LoggerAdapter(logging.getLogger(f"holdfast.run.{job.name}"), {})
        self._job, self._retry, self._artifacts = job, retry, InlineArtifacts(now)
        self._numbers, self._ended = itertools.count(1), dict[str, Any]()

    @property
    def cancelled(self) -> bool:
        return False

    def check(self) -> None:
        return None

    def step(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        check_name(name, what="a step's name", max_length=MAX_KEY)
        if inspect.iscoroutinefunction(fn):
            return self._astep(name, fn, args, kwargs)  # type: ignore[return-value]
        for left in range(self._retry.step_attempts - 1, -1, -1):
            try:
                value = fn(*args, **kwargs)
            except Exception as error:
                if not left or not self._retry.applies_to(error):
                    raise
                continue
            return self._checked(name, fn, value)  # type: ignore[no-any-return]
        raise AssertionError

    async def _astep(self, name: str, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return self._checked(name, fn, await fn(*args, **kwargs))

    def _checked(self, name: str, fn: Callable[..., Any], value: Any) -> Any:
        """Return the result of a step as a later attempt of a run would get it."""
        limit = self._job.runtime.settings.max_result_bytes
        return shape_of(fn).encode(value, what=f"the result of step {name!r}", max_bytes=limit)[1]

    def forget(self, name: str) -> None:
        check_name(name, what="a step's name", max_length=MAX_KEY)  # there is no stored step to delete

    def progress(self, done: float, total: float | None = None, note: str = "") -> None:
        self.log.info("progress %s/%s %s", done, total, note)

    def submit_child(self, job: Job[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Child[T]:
        name, _ = children.named(job, self._numbers)
        child = Child(f"inline/{name}", name, job)
        try:
            self._ended[child.id] = job(*args, **kwargs)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            self._ended[child.id] = RunFailed(child.id, "failed", "ERROR", text)
        return child

    def gather(self, *children_: Child[Any], return_exceptions: bool = False) -> list[Any]:
        children.checked(children_)
        answers = [self._ended[child.id] for child in children_]
        for answer in answers:
            if isinstance(answer, RunFailed) and not return_exceptions:
                raise answer
        return answers

    def finish(self, result: Any = None, *, connection: Any) -> None:
        # There is no run to finish, so only check the result.
        self._job.arguments.encode_finish(result, max_bytes=self._job.runtime.settings.max_result_bytes)

    def artifact(self, name: str, content: Content) -> Any:
        return create.artifact(self._artifacts, name, content)


class InlineArtifacts:
    """The artifacts of a call without a run; they are deleted with its context."""

    def __init__(self, now: datetime) -> None:
        self._now, self._made = now, dict[str, Artifact]()
        self._numbers = itertools.count()

    def recall(self, name: str) -> Artifact | None:
        return self._made.get(name)

    def scratch(self) -> tuple[str, Path]:
        part = f"inline.{next(self._numbers)}"
        return part, self._folder.scratch(part)

    def keep(self, name: str, content: bytes | Path, *, part: str | None = None) -> Artifact:
        part = part or f"inline.{next(self._numbers)}"
        data = content if isinstance(content, bytes) else content.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        made = Artifact(
            run_id="inline", folder="inline", name=name, claim=1, size=len(data), sha256=digest, created_at=self._now
        )
        self._folder.stage(part, Measured(io.BytesIO(data), name=name, max_bytes=len(data)))
        self._folder.publish(part, made.address)
        self._made[name] = made.at(self._folder)
        return made

    @cached_property
    def _folder(self) -> LocalFolder:
        folder = tempfile.mkdtemp(prefix="holdfast-inline-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return LocalFolder(Path(folder))
