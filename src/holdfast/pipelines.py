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
from holdfast.jobs import (
    Decorator,
    Isolation,
    Job,
    Options,
    as_duration,
    checked_policy,
    isolation_of,
)
from holdfast.plans import Plan, Split, Stage
from holdfast.policies import Policy
from holdfast.retries import Retry
from holdfast.submissions import Submission

if TYPE_CHECKING:
    from holdfast.engine import Holdfast

OnError = Literal["stop", "continue"]
After: TypeAlias = "Job[..., Any] | Sequence[Job[..., Any]] | None"
MAX_STAGE = 100
RESERVED = (plans.CHILD, "segments")


class Pipeline(Job[..., Any]):
    """Stages that run one after another or side by side; submitted as one run, whose result is its last stage's."""

    fills = True

    def __init__(self, hf: Holdfast, name: str, *, queue: str | None, priority: int) -> None:
        options = Options(queue=queue or "default", priority=priority)
        super().__init__(hf, _concluded, name=name, options=options, isolation="thread")
        self._queue_given = queue is not None
        self._given: dict[str, inspect.Parameter] = {}
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
        given = dict(self._given)
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
        self._given, self.arguments, self.stages[stage.stage] = given, arguments, stage


class StageJob(Job[..., Any]):
    """One stage's function, and where it stands in its pipeline."""

    fills = True

    def __init__(
        self,
        pipeline: Pipeline,
        fn: Callable[..., Any],
        *,
        stage: str,
        after: tuple[StageJob, ...],
        each: str | None,
        version: str,
        spare: int | None,
        may_fail: bool,
        options: Options,
        isolation: Isolation | None,
        own: tuple[bool, bool],
    ) -> None:
        name = f"{pipeline.name}.{stage}"
        if not stage.isidentifier() or len(stage) > MAX_STAGE or stage in RESERVED:
            raise InvalidPolicy(f"pipeline {pipeline.name}: {stage!r} can't be the name of a stage")
        if stage in pipeline.stages:
            raise InvalidPolicy(f"pipeline {pipeline.name} has a stage {stage!r} already; give this one name=…")
        if not isinstance(version, str) or not 0 < len(version) <= MAX_STAGE or not codec.storable(version):
            raise InvalidPolicy(f"stage {name}: version is text of 1 to {MAX_STAGE} characters")
        super().__init__(pipeline.hf, fn, name=name, options=options, isolation=isolation_of(fn, isolation, name=name))
        self.pipeline, self.stage, self.after, self.each, self.version = pipeline, stage, after, each, version
        self.spare, self.may_fail, self._own = spare, may_fail, own
        if each is not None and not after:
            raise InvalidPolicy(f"stage {name}: each={each!r} needs after=…: the stage that returns the segments")
        if each is not None and each not in self.arguments.names:
            raise InvalidPolicy(f"stage {name}: each={each!r} names no parameter of its function")
        self.source: StageJob | None = None if each is None else after[0].source or after[0]
        self.given = self._given()

    @property
    def ancestors(self) -> dict[str, StageJob]:
        """Every stage that has ended when this one starts."""
        found: dict[str, StageJob] = {}
        for stage in self.after:
            found |= stage.ancestors | {stage.stage: stage}
        return found

    def planned(self, options: Options) -> Stage:
        """The stage as a plan has it, for a pipeline that is submitted with these options."""
        own_queue, own_priority = self._own
        split = None
        if self.each is not None and self.source is not None:
            split = Split(
                parameter=self.each,
                job=self.name,
                source=self.source.stage,
                follows=tuple(stage.stage for stage in self.after if stage.source is self.source),
                spare=self.spare,
            )
        return Stage(
            name=self.stage,
            version=self.version,
            job=self.name if split is None else Collector.name_of(self),
            queue=self.options.queue if own_queue else options.queue,
            priority=self.options.priority if own_priority else options.priority,
            policy=self.options.policy,
            after=tuple(stage.stage for stage in self.after),
            may_fail=self.may_fail,
            split=split,
        )

    def submission(
        self, run_id: str, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime
    ) -> Submission:
        raise InvalidPolicy(f"{self.name} is a stage: submit its pipeline, {self.pipeline.name}")

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        names = [name for name in self.arguments.names if name != self.each]
        found = ask("stage", names) if names else {}
        if self.each is not None:
            found |= {self.each: codec.dump(stages.value_of(args), what=self.each)}
        return stages.as_object(found)

    def _given(self) -> dict[str, inspect.Parameter]:
        """The parameters that are arguments of the pipeline: those that nothing else fills."""
        signature = inspect.signature(self.fn, eval_str=False)
        before, given = self.ancestors, dict[str, inspect.Parameter]()
        for name in self.arguments.names:
            if name == self.each or name in before:
                continue
            if name == "ctx":
                raise InvalidPolicy(f"stage {self.name}: write ctx: Context, so that it is known for a context")
            if name in self.pipeline.stages or name == self.stage:
                raise InvalidPolicy(f"stage {self.name} takes {name!r}, but does not come after that stage")
            if name == "segments":
                self._check_segments()
                continue
            given[name] = signature.parameters[name].replace(annotation=self.arguments.hints.get(name, Any))
        return given

    def _check_segments(self) -> None:
        split = [stage.stage for stage in self.after if stage.each is not None]
        if len(split) != 1:
            raise InvalidPolicy(
                f"stage {self.name} takes 'segments', but comes after {len(split)} split stages; "
                "name the parameter like the stage whose results it should get"
            )


class Collector(Job[..., Any]):
    """What ends a split stage, when its last segment has ended."""

    fills = True

    def __init__(self, stage: StageJob) -> None:
        options = Options(queue=stage.options.queue)
        super().__init__(stage.hf, _concluded, name=self.name_of(stage), options=options, isolation="thread")

    @staticmethod
    def name_of(stage: StageJob) -> str:
        return f"{stage.name}[]"

    def submission(
        self, run_id: str, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime
    ) -> Submission:
        raise InvalidPolicy(f"{self.name} is part of a pipeline and can't be submitted alone")

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        return stages.as_object(ask("collector", []))


def _concluded(result: Any) -> Any:
    """A pipeline or a split stage does no work of its own: what it comes to is read from the runs that did."""
    return result


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
