"""Stage jobs: the function of a stage as a job, with its position in the pipeline and the inputs it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import GenericAlias, NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from holdfast.jobs.decorator import isolation_of
from holdfast.jobs.job import Isolation, Job
from holdfast.jobs.options import Options
from holdfast.pipelines import stages
from holdfast.pipelines.plan import Split, Stage
from holdfast.runs.submission import CHILD, Draft
from holdfast.support import json_text
from holdfast.support.errors import InvalidPolicy
from holdfast.support.validation import is_name

if TYPE_CHECKING:
    from holdfast.pipelines.pipeline import Pipeline

MAX_STAGE = 100
RESERVED = (CHILD, "segments")


class StageJob(Job[..., Any]):
    """The function of one stage, and its position in the pipeline."""

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
        failures_allowed: int | None,
        may_fail: bool,
        options: Options,
        isolation: Isolation | None,
        own: tuple[bool, bool],
    ) -> None:
        name = f"{pipeline.name}.{stage}"
        if not stage.isidentifier() or len(stage) > MAX_STAGE or stage in RESERVED:
            raise InvalidPolicy(
                f"pipeline {pipeline.name}: {stage!r} can't be the name of a stage; use a Python identifier of at most "
                f"{MAX_STAGE} characters, but not {' or '.join(RESERVED)}"
            )
        if stage in pipeline.stages:
            raise InvalidPolicy(f"pipeline {pipeline.name} already has a stage {stage!r}; give this one another name=…")
        if stage in pipeline.given:
            raise InvalidPolicy(
                f"pipeline {pipeline.name}: {stage!r} is an argument of another stage; give this one another name=…"
            )
        if not is_name(version, max_length=MAX_STAGE):
            raise InvalidPolicy(f"stage {name}: version must be text of 1 to {MAX_STAGE} characters")
        self.pipeline, self.stage, self.after, self.each, self.version = pipeline, stage, after, each, version
        self.failures_allowed, self.may_fail, self._own = failures_allowed, may_fail, own
        self.source: StageJob | None = None if each is None or not after else after[0].source or after[0]
        isolation = isolation_of(fn, isolation, name=name)
        super().__init__(pipeline.submitter, fn, name=name, options=options, isolation=isolation, types=self._types())
        if each is not None and not after:
            raise InvalidPolicy(f"stage {name}: each={each!r} needs after=… with the stage that returns the segments")
        if each is not None and each not in self.arguments.names:
            raise InvalidPolicy(f"stage {name}: each={each!r} is not a parameter of its function")
        self.given = self._given()

    @property
    def ancestors(self) -> dict[str, StageJob]:
        """Every stage that has ended when this one starts, by name."""
        ancestors: dict[str, StageJob] = {}
        for stage in self.after:
            ancestors |= stage.ancestors | {stage.stage: stage}
        return ancestors

    def result_type(self, *, beside: StageJob | None = None) -> Any:
        """Return the type of the result that other stages get.

        If `beside` has the same segments, each of its segments gets only the result of the segment with the same name.
        """
        one = self.arguments.result.hint
        maybe = (NoneType if one is None else one) | None
        if self.each is None:
            return maybe if self.may_fail else one
        if beside is not None and beside.source is self.source:
            return maybe
        return GenericAlias(list, (one,)) | GenericAlias(dict, (str, one))

    def planned(self, options: Options) -> Stage:
        """Return the stage of the plan, for a pipeline submitted with these options."""
        own_queue, own_priority = self._own
        split = None
        if self.each is not None and self.source is not None:
            split = Split(
                parameter=self.each,
                job=self.name,
                source=self.source.stage,
                follows=tuple(stage.stage for stage in self.after if stage.source is self.source),
                failures_allowed=self.failures_allowed,
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

    def draft(self, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime) -> Draft:
        raise InvalidPolicy(f"{self.name} is a stage and can't be submitted; submit its pipeline, {self.pipeline.name}")

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        names = [name for name in self.arguments.names if name != self.each]
        values = ask("stage", names) if names else {}
        if self.each is not None:
            values |= {self.each: json_text.dump(stages.segment_value(args), what=self.each)}
        return stages.as_object(values)

    def _types(self) -> dict[str, Any]:
        """Return the types of the parameters that earlier stages fill, from the types that those stages return."""
        types = {name: stage.result_type(beside=self) for name, stage in self.ancestors.items()}
        split = [stage for stage in self.after if stage.each is not None]
        if len(split) == 1:
            types["segments"] = split[0].result_type()
        if self.each is not None and self.source is not None:
            types[self.each] = _segment_type(self.source.arguments.result.hint)
        return types

    def _given(self) -> dict[str, inspect.Parameter]:
        """Return the parameters that are arguments of the pipeline: those that no earlier stage fills."""
        signature = inspect.signature(self.fn, eval_str=False)
        before, given = self.ancestors, dict[str, inspect.Parameter]()
        for name in self.arguments.names:
            if name == self.each or name in before:
                continue
            if name == "ctx":
                raise InvalidPolicy(f"stage {self.name}: annotate the parameter ctx as `ctx: Context`")
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
                "name the parameter after the stage whose results it should get"
            )


def _segment_type(values: Any) -> Any:
    """Return the type of one segment's value, from the type of the list or mapping that a stage returns."""
    match get_origin(values), get_args(values):
        case (kind, (one,)) if kind is list:
            return one
        case (kind, (one, more)) if kind is tuple and more is ...:
            return one
        case (kind, (_, one)) if kind is dict:
            return one
    return Any


class Collector(Job[..., Any]):
    """The job of a split stage's own run: it ends the stage when the last segment has ended."""

    fills = True

    def __init__(self, stage: StageJob) -> None:
        options = Options(queue=stage.options.queue)
        super().__init__(stage.submitter, return_result, name=self.name_of(stage), options=options, isolation="thread")

    @staticmethod
    def name_of(stage: StageJob) -> str:
        return f"{stage.name}[]"

    def draft(self, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime) -> Draft:
        raise InvalidPolicy(f"{self.name} is part of a pipeline and can't be submitted; submit the pipeline")

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        return stages.as_object(ask("collector", []))


def return_result(result: Any) -> Any:
    """The function of pipelines and split stages. They do no work: their result comes from the runs of their parts."""
    return result
