"""Build jobs: functions that run once for each scope and fingerprint, however many runs request the build.

@hf.build(timeout=600)
def environment(ctx: Context, configuration_id: str, fingerprint: str) -> str: ...

process.using(depends_on=[environment.request(configuration_id="c1", fingerprint=fp)]).submit("doc-1")
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from holdfast.jobs.arguments import KeySpec, check_key, key_from
from holdfast.jobs.context import Context
from holdfast.jobs.decorator import chosen_name, isolation_of
from holdfast.jobs.job import Isolation, Job
from holdfast.jobs.options import Options, checked_policy
from holdfast.jobs.submitter import Submitter
from holdfast.runs.submission import Draft, Submission
from holdfast.support import json_text, telemetry
from holdfast.support.errors import InvalidArguments, InvalidPolicy
from holdfast.support.validation import MAX_KEY
from holdfast.values.builds import BuildRequest
from holdfast.values.policies import Policy

P = ParamSpec("P")
R = TypeVar("R")

FINGERPRINT = re.compile(r"[!-~]{1,128}")


class BuildJob(Job[P, R]):
    """A job that runs once for each scope and fingerprint. `submit` returns the run of the build, existing or new."""

    def __init__(
        self,
        submitter: Submitter,
        fn: Callable[..., Any],
        *,
        name: str,
        options: Options,
        isolation: Isolation,
        scope: KeySpec | None,
    ) -> None:
        super().__init__(submitter, fn, name=name, options=options, isolation=isolation)
        if "fingerprint" not in self.arguments.names:
            raise InvalidPolicy(f"build {name} needs a parameter 'fingerprint: str'")
        check_key(scope, self.arguments.names, name, what="scope")
        self.scope = scope
        parameters = inspect.signature(fn).parameters.values()
        self._defaults = {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
        self._defaults.pop(self.arguments.context_name or "", None)

    def request(self, *args: P.args, **kwargs: P.kwargs) -> BuildRequest:
        """Return a request for the build with these arguments. A run with it in `depends_on` waits for the build."""
        return self._request(self.options, args, kwargs)

    def draft(self, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime) -> Draft:
        """Return a submission that gets or creates the build."""
        request = self._request(options, args, kwargs)
        if options.connection is not None:
            raise InvalidPolicy(
                f"build {self.name} can't be created in your transaction, because other processes could not see it. "
                "In the transaction, submit a run that waits for the build: depends_on=[….request(…)]"
            )
        traceparent = telemetry.current()
        return lambda new_id, created_at: Submission(
            run_id=new_id(),
            created_at=created_at,
            job=self.name,
            queue=request.queue,
            priority=request.priority,
            key=request.key,
            args=request.args,
            policy=request.policy,
            tags=request.tags,
            kind="build",
            build=request,
            traceparent=traceparent,
        )

    def _request(self, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> BuildRequest:
        _check_options(self.name, options)
        try:
            given = self._defaults | self.arguments.named(args, kwargs)
        except TypeError as error:
            raise InvalidArguments(f"build {self.name}: {error}") from None
        text, values = self.arguments.encode((), given, max_bytes=self.runtime.settings.max_args_bytes)
        fingerprint = values["fingerprint"]
        if not isinstance(fingerprint, str) or not FINGERPRINT.fullmatch(fingerprint):
            raise InvalidArguments(
                f"build {self.name}: a fingerprint must be text of 1 to 128 visible ASCII characters; "
                "holdfast.fingerprint(…) returns one"
            )
        return BuildRequest(
            job=self.name,
            scope=self._scope_of(values, json_text.load(text)),
            fingerprint=fingerprint,
            queue=options.queue,
            priority=options.priority,
            args=text,
            policy=options.policy,
            tags=json_text.compact(dict(options.tags)) if options.tags else "{}",
        )

    def _scope_of(self, values: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
        """Return the scope as text: `configuration_id:c1`, JSON for several parameters, or a digest if too long."""
        if self.scope is not None:
            scope = key_from(self.scope, values, self.name, what="scope")
            if scope is None:
                raise InvalidArguments(f"build {self.name}: the scope must not be None")
            return scope
        rest = {name: value for name, value in stored.items() if name != "fingerprint"}
        if len(rest) == 1:
            [(name, value)] = rest.items()
            scope = f"{name}:{value if isinstance(value, str) else json_text.compact(value)}"
        else:
            scope = json_text.compact(rest)
        if len(scope) > MAX_KEY or not json_text.storable(scope):
            return f"sha256:{hashlib.sha256(scope.encode('utf-8', 'surrogatepass')).hexdigest()}"
        return scope


class BuildDecorator:
    """The decorator that `hf.build(…)` returns. It turns a function into a BuildJob and keeps its types."""

    def __init__(self, make: Callable[[Callable[..., Any]], BuildJob[..., Any]]) -> None:
        self._make = make

    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> BuildJob[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, R]], /) -> BuildJob[P, R]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Context, P], R], /) -> BuildJob[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> BuildJob[P, R]: ...
    def __call__(self, fn: Callable[..., Any], /) -> BuildJob[..., Any]:
        return self._make(fn)


def build_decorator(
    submitter: Submitter, *, name: str | None, scope: KeySpec | None, options: Options, isolation: Isolation | None
) -> BuildDecorator:
    """Return a decorator that turns a function into a build and registers it."""

    def make(fn: Callable[..., Any]) -> BuildJob[..., Any]:
        chosen = chosen_name(fn, name)
        how = isolation_of(fn, isolation, name=chosen)
        job: BuildJob[..., Any] = BuildJob(submitter, fn, name=chosen, options=options, isolation=how, scope=scope)
        submitter.runtime.jobs.add(job)
        return job

    return BuildDecorator(make)


def build_policy(given: dict[str, Any]) -> Policy:
    """Return the policy of a build. Key options are refused: the key of a build is its scope and fingerprint."""
    also = ("name", "scope", "queue", "priority", "isolation")
    return Policy(**checked_policy(given, of="a build", also=also, unfit=("key_limit", "key_order")))


def _check_options(name: str, options: Options) -> None:
    """Refuse options that can't apply to a build, because another run may have requested the build already."""
    given = {
        "key": options.key,
        "delay": options.delay,
        "due_at": options.due_at,
        "depends_on": options.depends_on or None,
        "idempotency_key": options.idempotency_key,
    }
    if unfit := [option for option, value in given.items() if value is not None]:
        raise InvalidPolicy(f"build {name}: a build can't have {' or '.join(unfit)}: it starts when it is requested")
