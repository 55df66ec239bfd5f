"""Pipelines: stages in code, each a job of its own, joined by what comes after what.

    video = hf.pipeline("video")

    @video.stage()
    def script(ctx: Context, text: str) -> list[str]: ...

    @video.stage(after=script, each="segment")
    def audio(segment: str) -> str: ...

    @video.stage(after=audio)
    def render(segments: list[str]) -> str: ...

A stage names stages that were declared before it, so there are no circles. Its parameters are filled by their names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from holdfast import codec, plans, stages
from holdfast.arguments import Arguments
from holdfast.errors import InvalidPolicy
from holdfast.jobs import Decorator, Isolation, Job
from holdfast.options import Options, as_duration, checked_policy
from holdfast.plans import Plan
from holdfast.policies import Policy
from holdfast.retries import Retry
from holdfast.stage_jobs import Collector, StageJob, concluded
from holdfast.submissions import Submission

if TYPE_CHECKING:
    from holdfast.engine import Holdfast

OnError = Literal["stop", "continue"]
After: TypeAlias = "Job[..., Any] | Sequence[Job[..., Any]] | None"


class Pipeline(Job[..., Any]):
    """Stages that run one after another or side by side; submitted as one run, whose result is its last stage's."""

    fills = True

    def __init__(self, hf: Holdfast, name: str, *, queue: str | None, priority: int) -> None:
        options = Options(queue=queue or "default", priority=priority)
        super().__init__(hf, concluded, name=name, options=options, isolation="thread")
        self._queue_given = queue is not None
        self.given: dict[str, inspect.Parameter] = {}
        self.stages: dict[str, StageJob] = {}
        self.arguments = Arguments(_signed({}), job=name)

    def stage(
        self,
        bare: None = None,
        /,
        *,
        after: After = None,
        each: str | None = None,
        version: str = "1",
        on_error: OnError = "stop",
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
        """Make a function a stage: its name, or the function's, is how other stages' parameters name its result.

        after           the stage, or stages, that must have ended before
        each            split it: a run for each segment, whose value this parameter gets. The first stage of `after`
                        says which segments: what it returns, or those of its own
        version         grows when the stage makes something else than before; part of where its artifacts lie
        on_error        an ERROR fails the pipeline ("stop"), or the stages after it go on without ("continue")
        allow_failures  as "continue", for so many segments
        **policy        any other field of Policy
        """
        if bare is not None:
            raise InvalidPolicy(f"pipeline {self.name}: write @{self.name}.stage() with its parentheses")
        chosen = {
            "timeout": as_duration(timeout),
            "max_attempts": max_attempts,
            "retry": retry or Retry(),
            "on_crash": on_crash or ("fail" if self.hf.settings.solo else "requeue"),
        }
        options = Options(
            queue=queue or self.options.queue,
            priority=self.options.priority if priority is None else priority,
            policy=Policy(**checked_policy(chosen | policy)),
        )

        def register(fn: Callable[..., Any]) -> Job[..., Any]:
            fn = fn.fn if isinstance(fn, Job) else fn  # a job, or a stage of another pipeline, does its work here too
            stage = StageJob(
                self,
                fn,
                stage=name or fn.__name__,
                after=_listed(self, after),
                each=each,
                version=version,
                spare=_spare(on_error, allow_failures, each=each),
                may_fail=on_error == "continue" and each is None,
                options=options,
                isolation=isolation,
                own=(queue is not None, priority is not None),
            )
            self._add(stage)
            return stage

        return Decorator(register)

    def submission(
        self, run_id: str, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime
    ) -> Submission:
        if not self.stages:
            raise InvalidPolicy(f"pipeline {self.name} has no stage")
        if options.key is not None:
            raise InvalidPolicy(f"pipeline {self.name}: a pipeline takes no key; its stages run on their own")
        if options.policy != Policy():
            raise InvalidPolicy(f"pipeline {self.name}: what a run may do is said of its stages, not of the pipeline")
        roots = super().submission(run_id, options, args, kwargs, now=now)
        plan = Plan(arguments=roots.args, stages=tuple(stage.planned(options) for stage in self.stages.values()))
        queue = options.queue if self._queue_given or options.queue != "default" else plan.last[0].queue
        own = replace(roots, queue=queue, policy=Policy(), due_at=None, after={}, wishes={}, needed=())
        return plans.submission(plan, own, new_id=lambda: self.hf.ids.new(now), roots=roots)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise InvalidPolicy(f"pipeline {self.name} can't be called as a function; submit it, or call its stages")

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        return stages.as_object(ask("pipeline", []))

    def decode_arguments(self, text: str) -> dict[str, Any]:
        return {"result": codec.load(text)["result"]}

    def _add(self, stage: StageJob) -> None:
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
        arguments = Arguments(_signed(given), job=self.name)
        self.hf.jobs.add(stage)
        if stage.each is not None:
            self.hf.jobs.add(Collector(stage))
        self.given, self.arguments, self.stages[stage.stage] = given, arguments, stage


def _listed(pipeline: Pipeline, after: After) -> tuple[StageJob, ...]:
    named: Iterable[Any] = () if after is None else (after,) if isinstance(after, Job) else after
    try:
        listed = tuple(named)
    except TypeError:
        listed = (after,)
    for stage in listed:
        if not isinstance(stage, StageJob) or stage.pipeline.stages is not pipeline.stages:
            raise InvalidPolicy(f"pipeline {pipeline.name}: after names {stage!r}, which is no stage of it")
    if len(set(listed)) < len(listed):
        raise InvalidPolicy(f"pipeline {pipeline.name}: after names a stage twice")
    return listed


def _spare(on_error: str, allow_failures: int | None, *, each: str | None) -> int | None:
    """How many segments may fail; None is any."""
    if on_error not in ("stop", "continue"):
        raise InvalidPolicy(f"on_error is 'stop' or 'continue', not {on_error!r}")
    if allow_failures is None:
        return 0 if on_error == "stop" else None
    if each is None:
        raise InvalidPolicy("allow_failures counts segments; a stage without each=… has none")
    if isinstance(allow_failures, bool) or not isinstance(allow_failures, int) or allow_failures < 0:
        raise InvalidPolicy("allow_failures is a whole number, 0 or more")
    return allow_failures


def _signed(given: Mapping[str, inspect.Parameter]) -> Callable[..., Any]:
    """A function with these parameters, for what only asks for a signature."""

    def submitted(**_: Any) -> None: ...

    submitted.__signature__ = inspect.Signature(list(given.values()))  # type: ignore[attr-defined]
    submitted.__annotations__ = {name: parameter.annotation for name, parameter in given.items()}
    return submitted


def _type(parameter: inspect.Parameter) -> str:
    return inspect.formatannotation(parameter.annotation)
