"""Jobs: a function with its name, its options and the methods that submit runs of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, Self, TypeVar

from holdfast.jobs.arguments import Arguments, KeySpec, check_key, key_from
from holdfast.jobs.options import Options, checked_dependencies, checked_policy
from holdfast.runs.handle import Run
from holdfast.runs.submission import Draft, Submission
from holdfast.support import json_text, telemetry
from holdfast.support.errors import InvalidArguments, InvalidPolicy
from holdfast.support.validation import as_duration
from holdfast.values.builds import BuildRequest
from holdfast.values.policies import OUTSIDE, Policy, Unique

if TYPE_CHECKING:
    from holdfast.jobs.submitter import Submitter

P = ParamSpec("P")
R = TypeVar("R")
Isolation = Literal["thread", "async", "process"]


class Job(Generic[P, R]):
    """A job of one Holdfast. Calling it executes the function at once; `submit` lets a worker execute it."""

    def __init__(
        self,
        submitter: Submitter,
        fn: Callable[..., Any],
        *,
        name: str,
        options: Options,
        isolation: Isolation,
        types: Mapping[str, Any] | None = None,
    ) -> None:
        self.fn, self.name, self.options, self.isolation = fn, name, options, isolation
        self.submitter, self.runtime = submitter, submitter.runtime
        self.arguments = Arguments(fn, job=name, types=types)
        self.migrate_arguments: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        check_key(options.key, self.arguments.names, name)
        check_key(options.rate_key, self.arguments.names, name, what="rate_key")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function inline, without a run. Its context, if it has one, stores nothing."""
        from holdfast.jobs.inline import call_inline

        return call_inline(self, args, dict(kwargs))  # type: ignore[no-any-return]

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """Submit a run; it is durable when this returns."""
        return self._submit(args, kwargs)

    def submit_by(self, by: str | None, arguments: Mapping[str, Any]) -> Run[R]:
        """Submit a run on behalf of an operator, who is named in the audit log."""
        return self._submit((), arguments, by=by)

    def _submit(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, by: str | None = None) -> Run[R]:
        connection = self.options.connection
        self.submitter.start(self.name, connection)
        return self._handle(self.submitter.submit(self._draft(args, kwargs), connection, by=by))

    async def asubmit(self, *args: P.args, **kwargs: P.kwargs) -> Run[R]:
        """`submit` for async callers."""
        connection = self.options.connection
        await self.submitter.astart(self.name, connection)
        return self._handle(await self.submitter.asubmit(self._draft(args, kwargs), connection))

    def submit_many(self, arguments: Iterable[Mapping[str, Any]]) -> list[Run[R]]:
        """Submit a run for each mapping of arguments: all of them in one transaction, or none."""
        connection = self.options.connection
        self.submitter.start(self.name, connection)
        return [self._handle(run_id) for run_id in self.submitter.submit_many(self._drafts(arguments), connection)]

    async def asubmit_many(self, arguments: Iterable[Mapping[str, Any]]) -> list[Run[R]]:
        """`submit_many` for async callers."""
        connection, listed = self.options.connection, _listed(arguments)
        await self.submitter.astart(self.name, connection)
        drafts = await self.submitter.threads.run(self._drafts, listed)
        return [self._handle(run_id) for run_id in await self.submitter.asubmit_many(drafts, connection)]

    def _draft(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Draft:
        return self.draft(self.options, args, kwargs, now=self.runtime.clock.now())

    def _drafts(self, many: Iterable[Mapping[str, Any]]) -> list[Draft]:
        if self.options.idempotency_key is not None:
            raise InvalidPolicy("an idempotency key identifies one run, but submit_many submits several")
        return [self._draft((), arguments) for arguments in _listed(many)]

    def _handle(self, run_id: str) -> Run[R]:
        return Run(self.submitter.access, run_id, decode=self.arguments.decode_result)

    def using(
        self,
        *,
        connection: Any = None,
        queue: str | None = None,
        priority: int | None = None,
        key: KeySpec | None = None,
        delay: timedelta | float | None = None,
        due_at: datetime | None = None,
        depends_on: Iterable[Any] | Mapping[Any, bool] | None = None,
        idempotency_key: str | None = None,
        rate_key: KeySpec | None = None,
        unique: Unique | None = None,
        tags: Mapping[str, str] | None = None,
        **policy: Any,
    ) -> Self:
        """Return the same job with other options for the runs submitted through it.

        connection       a database connection or SQLAlchemy session in whose transaction the run is submitted
        delay, due_at    start later: after a duration (or seconds), or at a time
        depends_on       runs or builds that must succeed first; map one to False if it only has to end
        idempotency_key  submitting again with the same key returns the same run
        unique           "queued" returns an existing queued run of the same key (or arguments); "active" also a
                         running one
        **policy         any field of Policy except only_from_code and start_at
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
            "depends_on": checked_dependencies(depends_on),
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
        """Decorate a function that converts arguments stored under an older signature to the current one."""
        self.migrate_arguments = migrate
        return migrate

    fills = False
    """Whether the arguments of a run are completed from the results of other runs when it starts."""

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        """Return the stored arguments with the missing ones filled in. `ask` reads them by name, as JSON text."""
        return args

    def decode_arguments(self, text: str) -> dict[str, Any]:
        """Return the stored arguments, migrated if they no longer match the signature; or raise InvalidArguments."""
        try:
            return self.arguments.decode(text)
        except InvalidArguments:
            if self.migrate_arguments is None:
                raise
            return self.arguments.decode(
                json_text.dump(self.migrate_arguments(json_text.load(text)), what="migrated arguments")
            )

    def encode_result(self, value: Any, *, max_bytes: int) -> tuple[str, Any]:
        """Return a result as JSON text and as the value restored from it; raise NotSerialisable or TooLarge."""
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
        """Return a validated submission with this id, without writing it."""
        ids = chain([run_id], iter(lambda: self.runtime.ids.new(now), None))
        return self.draft(options, args, kwargs, now=now)(lambda: next(ids), None)

    def draft(self, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime) -> Draft:
        """Return a validated submission without id and creation time; the transaction that writes it sets both."""
        text, values = self.arguments.encode(args, kwargs, max_bytes=self.runtime.settings.max_args_bytes)
        try:
            due_at = now + options.delay if options.delay is not None else options.due_at
        except OverflowError:
            raise InvalidPolicy(f"delay {options.delay} is too long: it ends after the year 9999") from None
        return partial(
            _submission,
            job=self.name,
            queue=options.queue,
            priority=options.priority,
            key=key_from(options.key, values, self.name),
            args=text,
            policy=rated(options, values, self.name),
            tags=json_text.compact(dict(options.tags)) if options.tags else "{}",
            idempotency_key=options.idempotency_key,
            unique=options.unique,
            due_at=due_at,
            dependencies={one: must for one, must in options.depends_on.items() if isinstance(one, str)},
            build_requests={one: must for one, must in options.depends_on.items() if isinstance(one, BuildRequest)},
            depends_on=tuple(options.depends_on),
            traceparent=telemetry.current(),
        )

    def __repr__(self) -> str:
        return f"<Job {self.name}>"


def _submission(new_id: Callable[[], str], created_at: datetime | None, **given: Any) -> Submission:
    return Submission(run_id=new_id(), created_at=created_at, **given)


def _listed(many: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Read the arguments of all runs once, in the caller's thread."""
    if isinstance(many, Mapping) or not isinstance(many, Iterable):
        raise InvalidArguments(f"submit_many takes a list with a mapping of arguments for each run, not {many!r}")
    listed = list(many)
    for arguments in listed:
        if not isinstance(arguments, Mapping):
            raise InvalidArguments(f"submit_many takes a mapping of arguments for each run, not {arguments!r}")
    return listed


def rated(options: Options, values: Mapping[str, Any], job: str) -> Policy:
    """Return the policy of a run, with the name under which its rate is counted."""
    if options.policy.rate is None or options.rate_key is None:
        return options.policy
    return options.policy.override(rate_name=key_from(options.rate_key, values, job, what="rate_key"))
