"""`@hf.schedule(…)`: run a job at set times."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from holdfast.jobs.context import Context
from holdfast.jobs.decorator import Decorator
from holdfast.jobs.job import Isolation, Job
from holdfast.jobs.submitter import Submitter
from holdfast.schedules import definitions
from holdfast.schedules.definitions import CatchUp, Overlap, Schedule
from holdfast.schedules.triggers import Adapted, Cron, Every, FireTimes, Trigger
from holdfast.support.clock import EPOCH
from holdfast.support.errors import InvalidArguments, InvalidPolicy
from holdfast.support.validation import as_duration, check_name, is_number
from holdfast.values.policies import MAX_KEY_LIMIT
from holdfast.values.retries import Retry

MAX_JOB = 128  # the longest name of a scheduled job: the length of `job_name` in the view of slots

P = ParamSpec("P")
R = TypeVar("R")


class Scheduling:
    """`@hf.schedule(…)`: schedules a function, or a job of this Holdfast."""

    def __init__(self, submitter: Submitter, declared: dict[str, Schedule], job: Callable[..., Decorator]) -> None:
        self._submitter, self._declared, self._job = submitter, declared, job

    def __call__(
        self,
        when: str | FireTimes | None = None,
        /,
        *,
        every: timedelta | float | None = None,
        tz: str | None = None,
        coalesce: bool | None = None,
        misfire_grace: timedelta | float | None = 300,
        catch_up: Literal["none", "latest"] | timedelta | float = "none",
        max_instances: int = 1,
        overlap: Overlap = "skip",
        jitter: timedelta | float | None = None,
        timeout: timedelta | float | None = None,
        expected_runtime: timedelta | float | None = None,
        name: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        retry: Retry | None = None,
        isolation: Isolation | None = None,
        keep_forever: bool = True,
    ) -> ScheduleDecorator:
        """Run a job at set times: `@hf.schedule("*/15 * * * *")` or `@hf.schedule(every=60)`.

        when              a cron expression with five fields, or six with seconds first; or an object with
                          `get_next_fire_time`, such as a trigger of APScheduler
        every             an interval instead, in seconds or as a timedelta, counted from 1970 in UTC
        tz                the time zone of the cron expression; default: UTC
        coalesce          run only the latest of several slots due at once (default, unless `catch_up` is a duration)
        misfire_grace     how late a slot may be claimed; after that it is missed (None: never)
        catch_up          "none"; "latest": run the latest slot, however late; a duration: run slots up to that age
        max_instances     how many runs of the job may be unfinished at once
        overlap           "skip" the slot if that many are unfinished, let its run "wait", or "cancel" unfinished runs
        jitter            delay each start by up to this time; the delay depends only on the job and the slot
        timeout           the time limit of a run; default: twice `expected_runtime`, or else the job's timeout
        name, queue, priority, retry, isolation  as for a job; if you schedule an existing job, set them on that job
        keep_forever      exempt the runs from retention

        The run of a slot has one attempt. It is not started again if its worker is lost or shuts down.
        """
        if callable(when) and not isinstance(when, FireTimes):
            raise InvalidPolicy('write @hf.schedule("*/15 * * * *") or @hf.schedule(every=60), with parentheses')
        trigger = _trigger(when, every, tz)
        if not is_number(max_instances, least=1, most=MAX_KEY_LIMIT):
            raise InvalidPolicy(f"max_instances must be 1 to {MAX_KEY_LIMIT}, not {max_instances!r}")
        expected = as_duration(expected_runtime)
        time_limit = as_duration(timeout) or (None if expected is None else 2 * expected)
        delay = as_duration(jitter)
        if delay is not None and isinstance(trigger, Every) and delay > trigger.interval:
            raise InvalidPolicy(f"jitter={delay} is longer than the interval, {trigger.interval}")
        caught_up: CatchUp = catch_up if catch_up in ("none", "latest") else _age(catch_up)
        own = {"name": name, "queue": queue, "priority": priority, "retry": retry, "isolation": isolation}
        given: dict[str, Any] = {option: value for option, value in own.items() if value is not None}

        def register(fn: Callable[..., Any] | Job[..., Any]) -> Job[..., Any]:
            job = self._attach(fn, given) if isinstance(fn, Job) else self._job(**given).make(fn)
            policy = job.options.policy.override(
                max_attempts=1,
                on_crash="fail",
                on_shutdown="fail",
                on_timeout="end",
                keep_forever=keep_forever,
                key_limit=max_instances,
                key_order="due",
                **({} if time_limit is None else {"timeout": time_limit}),
            )
            check_name(job.name, what="the name of a scheduled job", max_length=MAX_JOB)
            key = definitions.key_of(job.name)
            schedule = Schedule(
                name=job.name,
                trigger=trigger,
                coalesce=not isinstance(caught_up, timedelta) if coalesce is None else coalesce,
                misfire_grace=as_duration(misfire_grace),
                catch_up=caught_up,
                max_instances=max_instances,
                overlap=overlap,
                jitter=delay,
                takes_slot="scheduled_for" in job.arguments.names,
                queue=job.options.queue,
                priority=job.options.priority,
                policy=policy,
            )
            _check_arguments(job, schedule)
            if not isinstance(fn, Job):
                self._submitter.runtime.jobs.add(job)
            # Runs that are not submitted by the scheduler get the same key, so they don't overlap with slots either.
            job.options = replace(job.options, policy=policy, key=lambda **_: key)
            self._declared[job.name] = schedule
            return job

        return ScheduleDecorator(register)

    def _attach(self, job: Job[..., Any], given: dict[str, Any]) -> Job[..., Any]:
        if job.submitter is not self._submitter:
            raise InvalidPolicy(f"job {job.name} belongs to another Holdfast")
        if given:
            raise InvalidPolicy(
                f"job {job.name}: give {', '.join(given)} where the job is defined, not in its schedule"
            )
        if type(job) is not Job:
            # The run of a slot is a plain run: it has no plan and no fingerprint, and belongs to no pipeline.
            raise InvalidPolicy(
                f"{job.name} is a pipeline, a stage or a build and can't be scheduled; schedule a job that submits it"
            )
        if job.name in self._declared:
            raise InvalidPolicy(f"job {job.name} already has a schedule; use a second job for a second schedule")
        if job.options.key is not None:
            raise InvalidPolicy(
                f"job {job.name} has a key, but a schedule sets the key of its runs; schedule a job without a key"
            )
        return job


class ScheduleDecorator:
    """The decorator that `hf.schedule(…)` returns. It keeps the types of the function, and accepts a Job, too."""

    def __init__(self, register: Callable[[Any], Job[..., Any]]) -> None:
        self._register = register

    @overload
    def __call__(self, fn: Job[P, R], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Job[P, R]: ...
    def __call__(self, fn: Any, /) -> Job[..., Any]:
        return self._register(fn)


def _trigger(when: str | FireTimes | None, every: timedelta | float | None, tz: str | None) -> Trigger:
    if (when is None) == (every is None):
        raise InvalidPolicy('give either a cron expression, @hf.schedule("*/15 * * * *"), or @hf.schedule(every=60)')
    if isinstance(when, str):
        return Cron(when, "UTC" if tz is None else tz)
    if tz is not None:
        raise InvalidPolicy(f"tz={tz!r} applies to cron expressions only; leave it out for an interval or a trigger")
    return Adapted(when) if when is not None else Every(as_duration(every))  # type: ignore[arg-type]


def _age(value: timedelta | float | str) -> timedelta:
    duration = None if isinstance(value, str) else as_duration(value)
    if duration is None:
        raise InvalidPolicy(f"catch_up must be 'none', 'latest' or a duration, not {value!r}")
    return duration


def _check_arguments(job: Job[..., Any], schedule: Schedule) -> None:
    """Check that the job needs no argument except the time of the slot."""
    try:
        job.arguments.decode(schedule.arguments(EPOCH))
    except InvalidArguments as error:
        raise InvalidPolicy(
            f"job {job.name} can't be scheduled: {error}; the only parameter without a default that a slot can fill is "
            f"scheduled_for: datetime{job.arguments.lost_context}"
        ) from None
