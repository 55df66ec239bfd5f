"""JSON output: what `--json` prints where it differs from the value itself. Scripts parse these names: keep them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from holdfast.support import json_text
from holdfast.values.artifacts import Artifact
from holdfast.values.builds import Build
from holdfast.values.pipelines import PipelineInfo
from holdfast.values.runs import Finding, Snapshot, Why
from holdfast.values.workers import Task, WorkerInfo


def run(snapshot: Snapshot) -> dict[str, Any]:
    """A run: every field of Snapshot, with `result` and `policy` as JSON values."""
    fields = {name: getattr(snapshot, name) for name in Snapshot.__dataclass_fields__}
    return fields | {"result": json_text.shown(snapshot.result), "policy": json_text.load(snapshot.policy.to_json())}


def build(made: Build) -> dict[str, Any]:
    """A build: every field of Build, its run's id as `id`, with `result` as a JSON value."""
    fields = {name: getattr(made, name) for name in Build.__dataclass_fields__ if name != "run_id"}
    return {"id": made.run_id} | fields | {"result": json_text.shown(made.result)}


def pipeline(info: PipelineInfo) -> dict[str, Any]:
    """A pipeline's run, its stages in the order in which they were declared, and the first runs that failed."""
    return run(info.run) | {"stages": info.stages, "progress": info.progress, "troubles": info.troubles}


def worker(found: WorkerInfo, tasks: Sequence[Task]) -> dict[str, Any]:
    """A worker, and what it does now."""
    return asdict(found) | {"tasks": tasks}


def why(answer: Why) -> dict[str, Any]:
    return {"id": answer.run.id, "state": answer.run.state, "reasons": list(answer.reasons)}


def finding(found: Finding) -> dict[str, Any]:
    return {"problem": found.problem, "run_id": found.run_id or None, "detail": found.detail}


def artifact(found: Artifact) -> dict[str, Any]:
    return asdict(found) | {"address": found.address}
