"""JSON output: what `--json` prints if it differs from the value itself. Don't change these names: scripts use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from holdfast.support import json_text
from holdfast.values.artifacts import Artifact
from holdfast.values.builds import Build
from holdfast.values.pipelines import PipelineInfo
from holdfast.values.runs import Finding, Snapshot, Why
from holdfast.values.workers import ActiveRun, WorkerInfo


def run(snapshot: Snapshot) -> dict[str, Any]:
    """Return every field of Snapshot, with `result` and `policy` as JSON values."""
    fields = {name: getattr(snapshot, name) for name in Snapshot.__dataclass_fields__}
    return fields | {"result": json_text.shown(snapshot.result), "policy": json_text.load(snapshot.policy.to_json())}


def build(value: Build) -> dict[str, Any]:
    """Return every field of Build, with `run_id` as `id` and `result` as a JSON value."""
    fields = {name: getattr(value, name) for name in Build.__dataclass_fields__ if name != "run_id"}
    return {"id": value.run_id} | fields | {"result": json_text.shown(value.result)}


def pipeline(info: PipelineInfo) -> dict[str, Any]:
    """Return the run of a pipeline, its stages in the order of their declaration, and its first failures."""
    return run(info.run) | {"stages": info.stages, "progress": info.progress, "failures": info.failures}


def worker(found: WorkerInfo, tasks: Sequence[ActiveRun]) -> dict[str, Any]:
    """Return a worker and the runs that it executes."""
    return asdict(found) | {"active_runs": tasks}


def why(answer: Why) -> dict[str, Any]:
    return {"id": answer.run.id, "state": answer.run.state, "reasons": list(answer.reasons)}


def finding(found: Finding) -> dict[str, Any]:
    return {"problem": found.problem, "run_id": found.run_id or None, "detail": found.detail}


def artifact(found: Artifact) -> dict[str, Any]:
    return asdict(found) | {"address": found.address}
