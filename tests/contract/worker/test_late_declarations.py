"""Late declarations: a running worker serves what is declared after its start, as in a notebook."""

from __future__ import annotations

import pytest
from tests.waiting import wait_for

from holdfast import Holdfast


@pytest.mark.contract("S3")
def test_a_job_declared_while_a_worker_runs_is_served(live: Holdfast) -> None:
    with live.worker():

        @live.job(name="late")
        def late(number: int) -> int:
            return number + 1

        run = late.submit(number=1)

        assert run.result(timeout=60) == 2
        [worker] = live.workers.list()
        assert "late" in worker.jobs


@pytest.mark.contract("S3")
def test_a_build_a_pipeline_and_a_schedule_declared_late_are_served(live: Holdfast) -> None:
    with live.worker() as worker:

        @live.build(name="environment")
        def environment(fingerprint: str) -> str:
            return f"made {fingerprint}"

        @live.job(name="uses")
        def uses() -> str:
            return "used"

        film = live.pipeline("film")

        @film.stage()
        def script(title: str) -> str:
            return title.upper()

        @live.schedule("* * * * *", name="every minute")
        def tick() -> None: ...

        built = uses.using(depends_on=[environment.request(fingerprint="1")]).submit()
        made = film.submit(title="late")

        assert built.result(timeout=60) == "used"
        assert made.result(timeout=60) is not None
        assert "builds" in worker.queues
        wait_for(lambda: [found.name for found in live.schedules.list()] == ["every minute"])


@pytest.mark.contract("S3")
def test_a_worker_with_named_queues_serves_only_those(live: Holdfast) -> None:
    with live.worker(queues=["mail"]) as worker:

        @live.job(name="letter", queue="mail")
        def letter() -> int:
            return 1

        @live.job(name="other", queue="other")
        def other() -> int:
            return 2

        waiting = other.submit()
        assert letter.submit().result(timeout=60) == 1
        assert worker.queues == ["mail"]
        assert waiting.refresh().state == "queued"
