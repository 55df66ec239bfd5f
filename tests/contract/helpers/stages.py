"""The states of the stages of a pipeline."""

from __future__ import annotations

from holdfast import Holdfast


def states(hf: Holdfast, run_id: str) -> dict[str, str]:
    return {stage.name: stage.state for stage in hf.pipelines.show(run_id).stages}
