"""Jobs: a name, the function behind it, and the policies of its runs."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar, overload

from holdfast import codec, spelling, telemetry
from holdfast.arguments import Arguments
from holdfast.context import Context
from holdfast.errors import InvalidArguments, InvalidPolicy, JobExists, NotGuarded, OnlyFromCode, UnknownJob
from holdfast.options import (
    MAX_NAME,
    KeySpec,
    Options,
    as_duration,
    check_key,
    check_name,
    checked_policy,
    key_from,
    needs,
    rated,
)
from holdfast.policies import OUTSIDE, Policy
from holdfast.redaction import is_ours
from holdfast.submissions import Draft, Submission
from holdfast.uniques import Unique
from holdfast.wishes import Wish

if TYPE_CHECKING:
    from holdfast.engine import Holdfast
    from holdfast.handles import Run

P = ParamSpec("P")
R = TypeVar("R")

OWN, OPERATIONS = "holdfast.", "operations"  # what our own jobs' names begin with, and the queue that they go to

Isolation = Literal["thread", "async", "process"]
SCRIPT = "__holdfast_main__"  # what the program's own file is called where a run's process imports it


_imported: str | None = None


@contextlib.contextmanager
def importing(place: str) -> Iterator[None]:
    """Have `refuse_import` refuse, in every thread, while a program is imported for its jobs alone."""
    global _imported
    before, _imported = _imported, place
    try:
        yield
    finally:
        _imported = before


def refuse_import(what: str) -> None:
    """Raise NotGuarded, with the line of the user's code, while a program is only imported."""
    if _imported is None:
        return
    frame = sys._getframe(1)
    while frame.f_back is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    raise NotGuarded(
        f"{frame.f_code.co_filename} line {frame.f_lineno} {what} while {_imported}; "
        'put this below: if __name__ == "__main__":'
    )


class Job(Generic[P, R]):
    """A job of one Holdfast. Calling it runs the function here and now; `submit` has a worker run it."""

    def __init__(
        self,
        hf: Holdfast,
        fn: Callable[..., Any],
        *,
        name: str,
        options: Options,
        isolation: Isolation,
        types: Mapping[str, Any] | None = None,
    ) -> None:
        self.hf, self.fn, self.name, self.options, self.isolation = hf, fn, name, options, isolation
        self.arguments = Arguments(fn, job=name, types=types)
        self.migrate_arguments: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        check_key(options.key, self.arguments.names, name)
        check_key(options.rate_key, self.arguments.names, name, what="rate_key")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function inline, without a run. A context parameter is filled with one that remembers nothing."""
        return self.hf.call_inline(self, args, dict(kwargs))  # type: ignore[no-any-return]

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Queue a run; it is durable when this returns."""
        return self.hf.submit_job(self, self.options, args, kwargs)

    async def asubmit(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """`submit` for async callers."""
        return await self.hf.asubmit_job(self, self.options, args, kwargs)

    def submit_many(self, arguments: Iterable[Mapping[str, Any]]) -> list[Run[R]]:
        """Queue a run for each mapping of arguments, all in one transaction or none."""
        return self.hf.submit_jobs(self, self.options, arguments)

    async def asubmit_many(self, arguments: Iterable[Mapping[str, Any]]) -> list[Run[R]]:
        """`submit_many` for async callers."""
        return await self.hf.asubmit_jobs(self, self.options, arguments)

    def using(
        self,
        *,
        connection: Any = None,
        queue: str | None = None,
        priority: int | None = None,
        key: KeySpec | None = None,
        delay: timedelta | float | None = None,
        due_at: datetime | None = None,
        after: Iterable[Any] | Mapping[Any, bool] | None = None,
        idempotency_key: str | None = None,
        rate_key: KeySpec | None = None,
        unique: Unique | None = None,
        tags: Mapping[str, str] | None = None,
        **policy: Any,
    ) -> Self:
        """The same job with other options for what is submitted through it.

        connection       a database connection or SQLAlchemy session whose transaction the submission joins
        delay, due_at    start later: a duration (or seconds), or an instant
        after            runs or builds that must have succeeded before; a mapping to False means: must have ended
        idempotency_key  the same key gives the same run back
        unique           "queued" gives back the run of the same key (or arguments) that waits or is ready; "active"
                         also one that runs
        **policy         any field of Policy but only_from_code and start_at
        """
        if key is not None:
            check_key(key, self.arguments.names, self.name)
        check_key(rate_key, self.arguments.names, self.name, what="rate_key")
        given = {
            "connection": connection,
            "queue": queue,
            "priority": priority,
            "key": key,
            "delay": as_duration(delay),
            "due_at": due_at,
            "after": needs(after),
            "idempotency_key": idempotency_key,
            "rate_key": rate_key,
            "unique": unique,
            "tags": tags,
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if policy:
            checked = checked_policy(policy, of="a submission", also=given, unfit=OUTSIDE)
            changes["policy"] = self.options.policy.override(**checked)
        other = object.__new__(type(self))
        other.__dict__ = self.__dict__ | {"options": replace(self.options, **changes)}
        return other

    def on_changed_arguments(self, migrate: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[..., Any]:
        """Decorate a function that turns arguments stored under an older signature into today's."""
        self.migrate_arguments = migrate
        return migrate

    fills = False
    """Whether its arguments are completed when it starts, from what other runs came to."""

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        """The stored arguments with those that are found out now; `ask` reads them, as JSON text by name."""
        return args

    def decode_arguments(self, text: str) -> dict[str, Any]:
        """The stored arguments, through the migration hook when they no longer fit; else InvalidArguments."""
        try:
            return self.arguments.decode(text)
        except InvalidArguments:
            if self.migrate_arguments is None:
                raise
            return self.arguments.decode(
                codec.dump(self.migrate_arguments(codec.load(text)), what="migrated arguments")
            )

    def encode_result(self, value: Any, *, max_bytes: int) -> tuple[str, Any]:
        """JSON text of a run's result and the value that comes back from it, or a clear error."""
        return self.arguments.encode_result(value, max_bytes=max_bytes)

    def submission(
        self,
        run_id: str,
        options: Options,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        now: datetime,
    ) -> Submission:
        """A checked submission with this id; nothing has been written yet."""
        ids = chain([run_id], iter(lambda: self.hf.ids.new(now), None))
        return self.draft(options, args, kwargs, now=now)(lambda: next(ids), None)

    def draft(self, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime) -> Draft:
        """A checked submission that lacks its id and its time; the transaction that writes it gives it both."""
        text, values = self.arguments.encode(args, kwargs, max_bytes=self.hf.settings.max_args_bytes)
        try:
            due_at = now + options.delay if options.delay is not None else options.due_at
        except OverflowError:
            raise InvalidPolicy(f"a delay of {options.delay} ends beyond all calendars") from None
        return partial(
            _submission,
            job=self.name,
            queue=options.queue,
            priority=options.priority,
            key=key_from(options.key, values, self.name),
            args=text,
            policy=rated(options, values, self.name),
            tags=codec.compact(dict(options.tags)) if options.tags else "{}",
            idempotency_key=options.idempotency_key,
            unique=options.unique,
            due_at=due_at,
            after={needed: must for needed, must in options.after.items() if isinstance(needed, str)},
            wishes={needed: must for needed, must in options.after.items() if isinstance(needed, Wish)},
            needed=tuple(options.after),
            trace=telemetry.current(),
        )

    def __repr__(self) -> str:
        return f"<Job {self.name}>"


def _submission(new_id: Callable[[], str], created_at: datetime | None, **given: Any) -> Submission:
    return Submission(run_id=new_id(), created_at=created_at, **given)


class Registry:
    """The jobs that one Holdfast knows."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job[..., Any]] = {}
        self._own: Mapping[str, Callable[[], Job[..., Any]]] = {}

    def bring(self, own: Mapping[str, Callable[[], Job[..., Any]]]) -> None:
        """Know our own jobs too: they are found and served, but not listed; each is made when first asked for."""
        self._own = {name: cache(make) for name, make in own.items()}

    def add(self, job: Job[..., Any]) -> None:
        if job.name.startswith(OWN):
            raise InvalidPolicy(f"names that begin with {OWN!r} are our own; call the job something else")
        if job.name in self._jobs:
            raise JobExists(f"two functions claim the job name {job.name!r}; give one of them name=…")
        self._jobs[job.name] = job

    def __getitem__(self, name: str) -> Job[..., Any]:
        if (found := self.get(name)) is not None:
            return found
        likely = spelling.did_you_mean(name, self._jobs) or f"; known: {', '.join(sorted(self._jobs)) or 'none'}"
        raise UnknownJob(f"no job named {name!r} is registered here{likely}")

    def get(self, name: str) -> Job[..., Any] | None:
        return self._own[name]() if name in self._own else self._jobs.get(name)

    def refusal(self, name: str, stored: Policy | None = None) -> OnlyFromCode | None:
        """Why no one but the application's own code may start runs of this job; None if anyone may.

        What is declared here decides. A job that is not declared here is judged by `stored`, the policy of its run.
        """
        job = self.get(name)
        policy = stored if job is None else job.options.policy
        if policy is None or not policy.only_from_code:
            return None
        where = "" if policy.start_at is None else f"; start one at {policy.start_at}"
        return OnlyFromCode(f"only the application itself starts runs of {name}{where}", start_at=policy.start_at)

    def require_open(self, name: str, stored: Policy | None = None) -> None:
        """Raise OnlyFromCode unless anyone may start runs of this job."""
        if (refusal := self.refusal(name, stored)) is not None:
            raise refusal

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._jobs))

    def names(self) -> list[str]:
        return sorted(self._jobs)

    @property
    def declared(self) -> int:
        """How many jobs were declared; a job is never taken back."""
        return len(self._jobs)

    def served(self) -> list[str]:
        """All that a worker may claim: these, and our own."""
        return sorted([*self._jobs, *self._own])


class Decorator:
    """What `hf.job(...)` gives: it turns a function into a Job, with the function's own types."""

    def __init__(self, register: Callable[[Callable[..., Any]], Job[..., Any]]) -> None:
        self._register = register

    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> Job[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> Job[P, R]: ...
    def __call__(self, fn: Callable[..., Any], /) -> Job[..., Any]:
        return self._register(fn)


def decorator(hf: Holdfast, *, name: str | None, options: Options, isolation: Isolation | None) -> Decorator:
    """What makes a function a job of this Holdfast."""

    def register(fn: Callable[..., Any]) -> Job[..., Any]:
        chosen = chosen_name(fn, name)
        how = isolation_of(fn, isolation, name=chosen)
        job: Job[..., Any] = Job(hf, fn, name=chosen, options=options, isolation=how)
        hf.jobs.add(job)
        return job

    return Decorator(register)


def job_name(job: Job[..., Any] | str) -> str:
    """The name of a job, or of its schedule, that is named by itself or by its name."""
    name = job.name if isinstance(job, Job) else job
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not codec.storable(name):
        raise InvalidArguments(f"give a job or its name, not {job!r}")
    return name


def chosen_name(fn: Callable[..., Any], name: str | None) -> str:
    """What a function that becomes a job is called, or InvalidPolicy: it is none, or has no name."""
    if isinstance(fn, Job):
        raise InvalidPolicy(
            f"{fn.name} is a job already; to give a job its times, write @hf.schedule(…) above @hf.job(…)"
        )
    if not callable(fn):
        raise InvalidPolicy(f"{fn!r} is no function, so it can't be a job")
    if name is None and not hasattr(fn, "__qualname__"):
        raise InvalidPolicy(f"{fn!r} has no name by itself: give it name=…")
    chosen = name_of(fn) if name is None else name
    check_name(chosen, what="a job's name")
    return chosen


def name_of(fn: Callable[..., Any]) -> str:
    """The dotted path of a function; a script's own functions are named after its file, not `__main__`."""
    module = fn.__module__
    if module in ("__main__", SCRIPT):
        main = sys.modules["__main__"]
        spec = getattr(main, "__spec__", None)
        module = spec.name if spec is not None else Path(getattr(main, "__file__", None) or "main").stem
    return f"{module}.{fn.__qualname__}".replace(".<locals>", "")


def isolation_of(fn: Callable[..., Any], asked: Isolation | None, *, name: str) -> Isolation:
    is_async = inspect.iscoroutinefunction(fn)
    if asked is None:
        return "async" if is_async else "thread"
    if asked not in ("thread", "async", "process"):
        raise InvalidPolicy(f"job {name}: isolation is 'thread', 'async' or 'process', not {asked!r}")
    if (asked == "async") != is_async and asked != "process":
        raise InvalidPolicy(
            f"job {name}: isolation={asked!r} does not fit {'an async' if is_async else 'a plain'} function"
        )
    return asked
