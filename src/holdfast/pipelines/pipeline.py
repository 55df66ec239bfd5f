"""Pipelines: stages declared in code. Each stage is a job that runs after the stages that it names.

    video = hf.pipeline("video")

    @video.stage()
    def script(ctx: Context, text: str) -> list[str]: ...

    @video.stage(after=script, each="segment")
    def audio(segment: str) -> str: ...

    @video.stage(after=audio)
    def render(segments: list[str]) -> str: ...

A stage can only name stages declared before it, so there are no cycles. Its parameters are filled by name, with the
results of earlier stages or the arguments of the pipeline.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from typing_extensions import TypedDict

from holdfast.jobs.arguments import Arguments, plain
from holdfast.jobs.decorator import Decorator
from holdfast.jobs.job import Isolation, Job
from holdfast.jobs.options import Options, checked_policy
from holdfast.jobs.submitter import Submitter
from holdfast.pipelines import stages
from holdfast.pipelines.plan import Plan, plan_submission
from holdfast.pipelines.stage_jobs import Collector, StageJob, return_result
from holdfast.runs.submission import Draft
from holdfast.support import json_text
from holdfast.support.errors import InvalidArguments, InvalidPolicy
from holdfast.support.validation import as_duration, check_name, did_you_mean
from holdfast.values.policies import OUTSIDE, Policy
from holdfast.values.retries import Retry

OnError = Literal["stop", "continue"]
After: TypeAlias = "Job[..., Any] | str | Sequence[Job[..., Any] | str] | None"
ALSO = ("after", "each", "version", "on_error", "allow_failures", "name", "queue", "priority", "isolation")
"""Options of a stage that are not fields of its policy."""
_UNFIT = ("key_limit", "key_order", *OUTSIDE)


class Pipeline(Job[..., Any]):
    """Stages that run one after another or in parallel. It is submitted as one run.

    Its result is the result of the last stage, or a mapping by stage if there are several last stages.
    """

    fills = True

    def __init__(self, submitter: Submitter, name: str, *, queue: str | None, priority: int, policy: Policy) -> None:
        check_name(name, what="a pipeline's name")
        options = Options(queue="default" if queue is None else queue, priority=priority, policy=policy)
        super().__init__(submitter, return_result, name=name, options=options, isolation="thread")
        self._has_queue, self._policy = queue is not None, policy
        self.given: dict[str, inspect.Parameter] = {}
        self.stages: dict[str, StageJob] = {}
        self.arguments = Arguments(_with_signature({}, Any), job=name, noun="pipeline")

    def stage(
        self,
        bare: None = None,
        /,
        *,
        after: After = None,
        each: str | None = None,
        version: str = "1",
        on_error: OnError | None = None,
        allow_failures: int | None = None,
        name: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        timeout: timedelta | float | None = 120,
        max_attempts: int = 1,
        retry: Retry | None = None,
        on_crash: str | None = None,
        isolation: Isolation | None = None,
        **policy: Any,
    ) -> Decorator:
        """Turn a function into a stage. A later stage gets the result in a parameter with this stage's name.

        after           the stage or stages that must end first, as functions or by name
        each            split the stage into segments, one for each value that the first stage of `after` returns. Each
                        segment is a run and gets its value in the parameter with this name. If the first stage of
                        `after` is split too, both have the same segments
        version         change it when the stage starts to produce something else; a new version does not reuse the
                        artifacts of an older one
        on_error        "stop" (default): the pipeline fails if the stage fails; "continue": later stages run anyway
        allow_failures  the number of segments that may fail before the stage fails
        name            the stage's name; default: the function's
        queue, priority for its runs; default: those of the pipeline
        timeout, max_attempts, retry, on_crash, isolation  as for a job
        **policy        any other field of Policy, except key_limit, key_order, only_from_code and start_at
        """
        if bare is not None:
            raise InvalidPolicy(f"pipeline {self.name}: write @{self.name}.stage() with parentheses")
        chosen = {
            "timeout": as_duration(timeout),
            "max_attempts": max_attempts,
            "retry": retry or Retry(),
            "on_crash": on_crash or ("fail" if self.runtime.settings.single_process else "requeue"),
        }
        options = Options(
            queue=queue or self.options.queue,
            priority=self.options.priority if priority is None else priority,
            policy=Policy(**checked_policy(chosen | policy, of="a stage", also=ALSO, unfit=_UNFIT)),
        )

        def make(fn: Callable[..., Any]) -> Job[..., Any]:
            fn = fn.fn if isinstance(fn, Job) else fn  # a job, or a stage of another pipeline, can be a stage here too
            return StageJob(
                self,
                fn,
                stage=name or fn.__name__,
                after=_stages_before(self, after),
                each=each,
                version=version,
                failures_allowed=_failures_allowed(on_error, allow_failures, each=each),
                may_fail=on_error == "continue" and each is None,
                options=options,
                isolation=isolation,
                own=(queue is not None, priority is not None),
            )

        return Decorator(make, register=self._register)

    def draft(self, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime) -> Draft:
        if not self.stages:
            raise InvalidPolicy(f"pipeline {self.name} has no stages; declare one with @{self.name}.stage()")
        if options.key is not None:
            raise InvalidPolicy(
                f"pipeline {self.name}: a pipeline can't have a key, because its stages run on their own"
            )
        if options.policy != self._policy:
            raise InvalidPolicy(f"pipeline {self.name}: set policy options on its stages, not on the pipeline")
        self._check(args, kwargs)
        roots = super().draft(options, args, kwargs, now=now)(str, None)
        plan = Plan(arguments=roots.args, stages=tuple(stage.planned(options) for stage in self.stages.values()))
        queue = options.queue if self._has_queue or options.queue != "default" else plan.last[0].queue
        own = replace(roots, queue=queue, due_at=None, dependencies={}, build_requests={}, depends_on=())
        return lambda new_id, created_at: plan_submission(
            plan, replace(own, run_id=new_id(), created_at=created_at), new_id=new_id, roots=roots
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise InvalidPolicy(f"pipeline {self.name} can't be called as a function; submit it, or call its stages")

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        return stages.as_object(ask("pipeline", []))

    def decode_arguments(self, text: str) -> dict[str, Any]:
        return {"result": json_text.load(text)["result"]}

    def encode_result(self, value: Any, *, max_bytes: int) -> tuple[str, Any]:
        # The stages' runs have encoded this value already, so it is plain JSON here. Readers decode it by its type.
        return plain().encode(value, what=f"the result of {self.arguments.of}", max_bytes=max_bytes)

    def _check(self, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        """Raise an error that names each missing argument with its stages, and each argument that no stage takes."""
        if args:
            call = ", ".join(f"{name}=…" for name in self.given)
            raise InvalidArguments(f"pipeline {self.name} takes its arguments by name: submit({call})")
        faults = []
        for name, parameter in self.given.items():
            if name not in given and parameter.default is inspect.Parameter.empty:
                takers = " and ".join(stage.stage for stage in self.stages.values() if name in stage.given)
                faults.append(f"{name!r} is missing, for stage {takers}")
        for name in given:
            if name not in self.given:
                faults.append(f"no stage takes {name!r}{did_you_mean(name, self.given)}")
        if faults:
            raise InvalidArguments(f"pipeline {self.name}: {'; '.join(faults)}")

    def _register(self, stage: Job[..., Any]) -> None:
        assert isinstance(stage, StageJob)
        given = dict(self.given)
        for name, parameter in stage.given.items():
            before = given.get(name)
            if before is not None and _type(before) != _type(parameter):
                raise InvalidPolicy(
                    f"pipeline {self.name}: argument {name!r} is {_type(before)} in one stage "
                    f"and {_type(parameter)} in {stage.stage}"
                )
            required = parameter if before is None or before.default is not inspect.Parameter.empty else before
            given[name] = required.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        returns = _result_type([*self.stages.values(), stage])
        arguments = Arguments(_with_signature(given, returns), job=self.name, noun="pipeline")
        self.runtime.jobs.add(stage)
        if stage.each is not None:
            self.runtime.jobs.add(Collector(stage))
        self.given, self.arguments, self.stages[stage.stage] = given, arguments, stage


def _stages_before(pipeline: Pipeline, after: After) -> tuple[StageJob, ...]:
    named: Iterable[Any] = () if after is None else (after,) if isinstance(after, Job | str) else after
    listed: tuple[Any, ...]
    try:
        listed = tuple(pipeline.stages.get(one, one) if isinstance(one, str) else one for one in named)
    except TypeError:
        listed = (after,)
    for stage in listed:
        if not isinstance(stage, StageJob) or stage.pipeline.stages is not pipeline.stages:
            known = f"; so far it has {', '.join(pipeline.stages)}" if pipeline.stages else ""
            raise InvalidPolicy(
                f"pipeline {pipeline.name}: the option after names {stage!r}, which is not one of its stages{known}"
            )
    if len(set(listed)) < len(listed):
        raise InvalidPolicy(f"pipeline {pipeline.name}: the option after names a stage twice")
    return listed


def _failures_allowed(on_error: str | None, allow_failures: int | None, *, each: str | None) -> int | None:
    """Return how many segments may fail; None means any number."""
    if on_error not in (None, "stop", "continue"):
        raise InvalidPolicy(f"on_error must be 'stop' or 'continue', not {on_error!r}")
    if allow_failures is None:
        return None if on_error == "continue" else 0
    if on_error == "stop":
        raise InvalidPolicy("allow_failures contradicts on_error='stop'; give only one of them")
    if each is None:
        raise InvalidPolicy("allow_failures counts failed segments, so it needs each=…")
    if isinstance(allow_failures, bool) or not isinstance(allow_failures, int) or allow_failures < 0:
        raise InvalidPolicy("allow_failures must be a whole number, 0 or more")
    return allow_failures


def _result_type(stages: Sequence[StageJob]) -> Any:
    """Return the type of a pipeline's result: that of its last stage, or a mapping by stage if there are several."""
    before = {one.stage for stage in stages for one in stage.after}
    types = {stage.stage: stage.result_type() for stage in stages if stage.stage not in before}
    if len(types) == 1:
        return next(iter(types.values()))
    make: Any = TypedDict  # built from the stages, so mypy can't know its fields
    return make("Results", types)


def _with_signature(given: Mapping[str, inspect.Parameter], returns: Any) -> Callable[..., Any]:
    """Return a function with this signature; it is inspected, never called."""

    def submitted(**_: Any) -> None: ...

    submitted.__signature__ = inspect.Signature(list(given.values()))  # type: ignore[attr-defined]
    types = {name: parameter.annotation for name, parameter in given.items()}
    submitted.__annotations__ = types | {"return": returns}
    return submitted


def _type(parameter: inspect.Parameter) -> str:
    return inspect.formatannotation(parameter.annotation)
