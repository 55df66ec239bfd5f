"""Jobs: a name, the function behind it, and the policies of its runs."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar, overload

from holdfast import codec
from holdfast.arguments import Arguments
from holdfast.context import Context
from holdfast.errors import InvalidArguments, InvalidPolicy, JobExists, UnknownJob
from holdfast.policies import Policy
from holdfast.retries import Retry
from holdfast.submissions import Submission
from holdfast.uniques import Unique
from holdfast.wishes import Wish

if TYPE_CHECKING:
    from holdfast.engine import Holdfast
    from holdfast.handles import Run

P = ParamSpec("P")
R = TypeVar("R")

Isolation = Literal["thread", "async", "process"]
KeySpec = str | Callable[..., str | None]
MAX_KEY, MAX_NAME = 400, 200
SCRIPT = "__holdfast_main__"  # what the program's own file is called where a run's process imports it


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a job sets for its runs and a single submission may set anew."""

    queue: str = "default"
    priority: int = 0
    key: KeySpec | None = None
    policy: Policy = field(default_factory=Policy)
    delay: timedelta | None = None
    due_at: datetime | None = None
    after: Mapping[str | Wish, bool] = field(default_factory=dict)
    idempotency_key: str | None = None
    rate_key: KeySpec | None = None
    unique: Unique | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    connection: Any = None

    def __post_init__(self) -> None:
        for name, value in (("queue", self.queue), ("idempotency_key", self.idempotency_key)):
            if value is not None and not _is_name(value):
                raise InvalidPolicy(f"{name} is text of 1 to {MAX_NAME} characters, none NUL or half a character")
        if not isinstance(self.priority, int) or not -1_000_000 <= self.priority <= 1_000_000:
            raise InvalidPolicy("priority is a whole number between -1,000,000 and 1,000,000; higher goes first")
        if not isinstance(self.tags, Mapping) or not all(
            isinstance(part, str) for tag in self.tags.items() for part in tag
        ):
            raise InvalidPolicy("tags map text to text")
        if self.delay is not None and self.delay < timedelta(0):
            raise InvalidPolicy("delay can't be negative")
        if self.delay is not None and self.due_at is not None:
            raise InvalidPolicy("give delay or due_at, not both")
        if self.queue == "*":
            raise InvalidPolicy("'*' stands for all queues together; give this one another name")
        if self.unique not in (None, "queued", "active"):
            raise InvalidPolicy(f"unique is 'queued' or 'active', not {self.unique!r}")
        if self.due_at is not None and (not isinstance(self.due_at, datetime) or self.due_at.tzinfo is None):
            raise InvalidPolicy("due_at is a datetime with a time zone")


class Job(Generic[P, R]):
    """A job of one Holdfast. Calling it runs the function here and now; `submit` has a worker run it."""

    def __init__(
        self, hf: Holdfast, fn: Callable[..., Any], *, name: str, options: Options, isolation: Isolation
    ) -> None:
        self.hf, self.fn, self.name, self.options, self.isolation = hf, fn, name, options, isolation
        self.arguments = Arguments(fn, job=name)
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
        **policy         any field of Policy
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
            "after": _needs(after),
            "idempotency_key": idempotency_key,
            "rate_key": rate_key,
            "unique": unique,
            "tags": tags,
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if policy:
            changes["policy"] = self.options.policy.override(**checked_policy(policy))
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

    def submission(
        self,
        run_id: str,
        options: Options,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        now: datetime,
    ) -> Submission:
        """A checked submission; nothing has been written yet."""
        text, values = self.arguments.encode(args, kwargs, max_bytes=self.hf.settings.max_args_bytes)
        try:
            due_at = now + options.delay if options.delay is not None else options.due_at
        except OverflowError:
            raise InvalidPolicy(f"a delay of {options.delay} ends beyond all calendars") from None
        return Submission(
            run_id=run_id,
            job=self.name,
            queue=options.queue,
            priority=options.priority,
            key=key_from(options.key, values, self.name),
            args=text,
            policy=_rated(options, values, self.name),
            tags=codec.compact(dict(options.tags)) if options.tags else "{}",
            idempotency_key=options.idempotency_key,
            unique=options.unique,
            due_at=due_at,
            after={needed: must for needed, must in options.after.items() if isinstance(needed, str)},
            wishes={needed: must for needed, must in options.after.items() if isinstance(needed, Wish)},
            needed=tuple(options.after),
        )

    def __repr__(self) -> str:
        return f"<Job {self.name}>"


class Registry:
    """The jobs that one Holdfast knows."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job[..., Any]] = {}

    def add(self, job: Job[..., Any]) -> None:
        if job.name in self._jobs:
            raise JobExists(f"two functions claim the job name {job.name!r}; give one of them name=…")
        self._jobs[job.name] = job

    def __getitem__(self, name: str) -> Job[..., Any]:
        try:
            return self._jobs[name]
        except KeyError:
            known = ", ".join(sorted(self._jobs)) or "none"
            raise UnknownJob(f"no job named {name!r} is registered here; known: {known}") from None

    def get(self, name: str) -> Job[..., Any] | None:
        return self._jobs.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._jobs))

    def names(self) -> list[str]:
        return sorted(self._jobs)


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


def as_duration(value: timedelta | float | None) -> timedelta | None:
    """A duration from a timedelta or a number of seconds."""
    if value is None or isinstance(value, timedelta):
        return value
    try:
        return timedelta(seconds=value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPolicy(f"{value!r} is no duration: give a timedelta or a number of seconds") from None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_NAME and codec.storable(value)


def checked_policy(given: dict[str, Any]) -> dict[str, Any]:
    """Policy fields as a user writes them, with seconds made durations and unknown names refused."""
    unknown = given.keys() - set(Policy.__dataclass_fields__)
    if unknown:
        raise InvalidPolicy(
            f"unknown option {', '.join(sorted(unknown))}; a policy has {', '.join(Policy.__dataclass_fields__)}"
        )
    if "timeout" in given:
        given = given | {"timeout": as_duration(given["timeout"])}
    if not isinstance(given.get("retry", Retry()), Retry):
        raise InvalidPolicy("retry is a Retry(…)")
    return given


def _needs(after: Iterable[Any] | Mapping[Any, bool] | None) -> dict[str | Wish, bool] | None:
    if after is None:
        return None
    if isinstance(after, str) or not isinstance(after, Iterable):
        raise InvalidPolicy("after is a list of runs (or their ids), or a mapping of runs to whether they must succeed")
    pairs: Sequence[tuple[Any, bool]] = (
        list(after.items()) if isinstance(after, Mapping) else [(run, True) for run in after]
    )
    for run, _ in pairs:
        if not isinstance(run, str | Wish) and not isinstance(getattr(run, "id", None), str):
            raise InvalidPolicy(f"after: {run!r} is neither a run, nor the id of one, nor a build")
    return {run if isinstance(run, str | Wish) else run.id: must for run, must in pairs}


def _rated(options: Options, values: Mapping[str, Any], job: str) -> Policy:
    """The policy of a run, with what its rate is counted for."""
    if options.policy.rate is None or options.rate_key is None:
        return options.policy
    return options.policy.override(rate_name=key_from(options.rate_key, values, job, what="rate_key"))


def check_key(key: KeySpec | None, names: tuple[str, ...], job: str, *, what: str = "key") -> None:
    """Refuse a key (or what is spelled like one) that names no parameter."""
    if isinstance(key, str) and "{" in key:
        try:
            wanted = {field.partition(".")[0].partition("[")[0] for _, field, _, _ in Formatter().parse(key) if field}
        except ValueError as error:
            raise InvalidPolicy(f"job {job}: {what}={key!r} is no template: {error}") from None
        if unknown := wanted - set(names):
            raise InvalidPolicy(f"job {job}: {what}={key!r} names no parameter: {', '.join(sorted(unknown))}")
    elif isinstance(key, str) and key not in names:
        known = ", ".join(names) or "none"
        raise InvalidPolicy(
            f"job {job}: {what}={key!r} names no parameter (there are: {known}); a template has braces: '{{tenant}}'"
        )


def key_from(spec: KeySpec | None, values: Mapping[str, Any], job: str, *, what: str = "key") -> str | None:
    """`document_id` → `document_id:doc-1`; a template is filled in; a function is asked."""
    try:
        match spec:
            case None:
                return None
            case str() if "{" in spec:
                key: str | None = spec.format_map(values)
            case str():
                key = f"{spec}:{values[spec]}"
            case function:
                key = function(**values)
    except (KeyError, AttributeError, IndexError, TypeError, ValueError) as error:
        raise InvalidArguments(f"job {job}: its {what} can't be made from these arguments: {error!r}") from None
    if key is not None and not (0 < len(key) <= MAX_KEY and codec.storable(key)):
        raise InvalidArguments(
            f"job {job}: a {what} has 1 to {MAX_KEY} characters (this has {len(key)}), none NUL or half a character"
        )
    return key
