"""Separate orchestrator and worker: each does only its own work."""

from __future__ import annotations

import pytest
from tests.contract.helpers.waiting import PATIENCE
from tests.waiting import wait_for

from holdfast import Holdfast, InvalidPolicy
from holdfast.runs import workers
from holdfast.testing import Manual


@pytest.mark.contract("L2", "L6")
def test_a_separate_worker_advances_no_stage_and_a_separate_orchestrator_runs_no_job(url: str) -> None:
    with Holdfast(url, poll_interval=0.05, lease=3) as hf:
        film = hf.pipeline("film")

        @film.stage()
        def script() -> list[int]:
            return [1, 2]

        @film.stage(after=script)
        def title(script: list[int]) -> int:
            return len(script)

        @film.stage(after=script, each="number")
        def audio(number: int) -> int:
            return number * 10

        @film.stage(after=[title, audio])
        def render(title: int, audio: list[int]) -> int:
            return title + sum(audio)

        @hf.job(name="other")
        def other() -> None: ...

        def states() -> list[str]:
            return [stage.state for stage in hf.pipelines.show(run.id).stages]

        run = film.submit()
        with hf.worker(role="orchestrator") as orchestrator:
            [found] = hf.read(workers.live)
            assert (found.id, list(found.queues), found.concurrency) == (orchestrator.id, [], 0)
            assert ":orchestrator:" in found.id
            wait_for(lambda: states()[0] == "READY")
            lost = Manual(hf).worker("lost").claim()
            assert [one.lease.run_id for one in lost] == [hf.pipelines.show(run.id).stages[0].run_id]
            wait_for(lambda: states()[0] == "READY")
        with hf.worker(role="worker"):
            wait_for(lambda: states()[0] == "DONE")
            for _ in range(5):  # the worker continues to work and to poll
                other.submit().result(timeout=PATIENCE)
            assert states() == ["DONE", "NEW", "NEW", "NEW"]
            with hf.worker(role="orchestrator"):
                assert run.result(timeout=PATIENCE) == 32
        assert run.snapshot.takeovers == 0
        assert hf.verify() == []


def test_contradicting_roles_are_refused(url: str) -> None:
    with Holdfast(url) as hf:
        for wrong in ({"queues": ["mail"]}, {"concurrency": 2}, {"drain": True}):
            with pytest.raises(InvalidPolicy, match="role 'orchestrator' claims no runs"):
                hf.worker(role="orchestrator", **wrong)
        with pytest.raises(InvalidPolicy, match="role must be one of both, worker, orchestrator"):
            hf.worker(role="boss")  # type: ignore[arg-type]
    with Holdfast(url, single_process=True) as hf, pytest.raises(InvalidPolicy, match="with single_process"):
        hf.worker(role="worker")
