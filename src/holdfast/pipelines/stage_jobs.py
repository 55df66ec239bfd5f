"""Stage jobs: a stage's function as a job of its own, which knows its place in a pipeline and what it is given."""

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
        if stage in pipeline.given:
            raise InvalidPolicy(f"pipeline {pipeline.name}: {stage!r} is an argument of a stage; give this one name=…")
        if not is_name(version, max_length=MAX_STAGE):
            raise InvalidPolicy(f"stage {name}: version is text of 1 to {MAX_STAGE} characters")
        self.pipeline, self.stage, self.after, self.each, self.version = pipeline, stage, after, each, version
        self.spare, self.may_fail, self._own = spare, may_fail, own
        self.source: StageJob | None = None if each is None or not after else after[0].source or after[0]
        isolation = isolation_of(fn, isolation, name=name)
        super().__init__(pipeline.submitter, fn, name=name, options=options, isolation=isolation, types=self._types())
        if each is not None and not after:
            raise InvalidPolicy(f"stage {name}: each={each!r} needs after=…: the stage that returns the segments")
        if each is not None and each not in self.arguments.names:
            raise InvalidPolicy(f"stage {name}: each={each!r} names no parameter of its function")
        self.given = self._given()

    @property
    def ancestors(self) -> dict[str, StageJob]:
        """Every stage that has ended when this one starts."""
        found: dict[str, StageJob] = {}
        for stage in self.after:
            found |= stage.ancestors | {stage.stage: stage}
        return found

    def comes_to(self, *, beside: StageJob | None = None) -> Any:
        """The type of what others get of it; `beside` is a stage of the same segments, which gets its own one's."""
        one = self.arguments.result.hint
        maybe = (NoneType if one is None else one) | None
        if self.each is None:
            return maybe if self.may_fail else one
        if beside is not None and beside.source is self.source:
            return maybe
        return GenericAlias(list, (one,)) | GenericAlias(dict, (str, one))

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

    def draft(self, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime) -> Draft:
        raise InvalidPolicy(f"{self.name} is a stage: submit its pipeline, {self.pipeline.name}")

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        names = [name for name in self.arguments.names if name != self.each]
        found = ask("stage", names) if names else {}
        if self.each is not None:
            found |= {self.each: json_text.dump(stages.value_of(args), what=self.each)}
        return stages.as_object(found)

    def _types(self) -> dict[str, Any]:
        """The types of parameters that are filled by stages before it: those of the values that the stages return."""
        types = {name: stage.comes_to(beside=self) for name, stage in self.ancestors.items()}
        split = [stage for stage in self.after if stage.each is not None]
        if len(split) == 1:
            types["segments"] = split[0].comes_to()
        if self.each is not None and self.source is not None:
            types[self.each] = _of_each(self.source.arguments.result.hint)
        return types

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


def _of_each(values: Any) -> Any:
    """The type of one segment's value, of those that a stage returns as a list or a mapping."""
    match get_origin(values), get_args(values):
        case (kind, (one,)) if kind is list:
            return one
        case (kind, (one, more)) if kind is tuple and more is ...:
            return one
        case (kind, (_, one)) if kind is dict:
            return one
    return Any


class Collector(Job[..., Any]):
    """What ends a split stage, when its last segment has ended."""

    fills = True

    def __init__(self, stage: StageJob) -> None:
        options = Options(queue=stage.options.queue)
        super().__init__(stage.submitter, concluded, name=self.name_of(stage), options=options, isolation="thread")

    @staticmethod
    def name_of(stage: StageJob) -> str:
        return f"{stage.name}[]"

    def draft(self, options: Options, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, now: datetime) -> Draft:
        raise InvalidPolicy(f"{self.name} is part of a pipeline and can't be submitted alone")

    def filled(self, args: str, ask: Callable[[str, Sequence[str]], dict[str, str]]) -> str:
        return stages.as_object(ask("collector", []))


def concluded(result: Any) -> Any:
    """A pipeline or a split stage does no work of its own: what it comes to is read from the runs that did."""
    return result
