"""The log of a worker: one line for each failure, timeout and takeover."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.contract.helpers.waiting import PATIENCE, ended
from tests.contract.helpers.workers import register
from tests.waiting import wait_for

from holdfast import Holdfast, Retry
from holdfast.testing import FakeClock, Manual
from holdfast.worker import attempt_log

if TYPE_CHECKING:
    from tests.fixtures import Database


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="holdfast")
    return caplog


def about(log: pytest.LogCaptureFixture, run_id: str) -> list[tuple[str, str]]:
    """The lines of the log that name a run, with their levels."""
    found = [(record.levelname, record.getMessage()) for record in log.records if record.name.startswith("holdfast.")]
    return [(level, line.replace(run_id, "ID")) for level, line in found if run_id in line]


def test_a_failed_attempt_and_its_retry_are_logged_in_a_line_each(
    live: Holdfast, log: pytest.LogCaptureFixture
) -> None:
    @live.job(name="fetch", max_attempts=2, retry=Retry(delay=timedelta(milliseconds=50), jitter=0))
    def fetch() -> None:
        raise ConnectionError("the other end\nis down")

    run = fetch.submit()
    with live.worker():
        ended(run)
        wait_for(lambda: len(about(log, run.id)) >= 2)

    assert about(log, run.id) == [
        ("WARNING", "run ID (fetch): attempt 1 of 2 failed; the next attempt starts in 0.05 s: is down"),
        ("WARNING", "run ID (fetch): attempt 2 of 2 failed: is down"),
    ]


def test_a_timeout_is_logged(live: Holdfast, log: pytest.LogCaptureFixture) -> None:
    @live.job(name="slow", timeout=0.1)
    async def slow() -> None:
        await asyncio.sleep(PATIENCE)

    run = slow.submit()
    with live.worker():
        ended(run)
        wait_for(lambda: about(log, run.id))

    [(level, line)] = about(log, run.id)
    assert level == "WARNING"
    assert line.startswith("run ID (slow): attempt 1 of 1: Timed out after 0.1 s; the function stopped")


def test_starts_and_successes_are_logged_only_at_debug_level(live: Holdfast, log: pytest.LogCaptureFixture) -> None:
    @live.job(name="work")
    def work() -> None: ...

    with live.worker():
        quiet = work.submit()
        ended(quiet)
        log.set_level(logging.DEBUG, logger="holdfast.worker")
        loud = work.submit()
        ended(loud)
        wait_for(lambda: len(about(log, loud.id)) >= 2)

    assert about(log, quiet.id) == []
    assert about(log, loud.id) == [
        ("DEBUG", "run ID (work): attempt 1 of 1 starts"),
        ("DEBUG", "run ID (work): attempt 1 of 1 succeeded"),
    ]


def test_a_takeover_is_logged_by_the_new_worker(url: str, log: pytest.LogCaptureFixture) -> None:
    with Holdfast(url, poll_interval=0.05, lease=3) as hf:

        @hf.job(name="work")
        def work() -> str:
            return "done"

        run = work.submit()
        assert Manual(hf).worker("gone").claim()
        with hf.worker():
            assert run.result(timeout=PATIENCE) == "done"

    assert about(log, run.id) == [
        ("WARNING", "run ID (work) was taken from gone: its lease expired; it is queued again"),
    ]


@pytest.mark.contract("S5")
def test_a_released_run_is_not_logged_as_a_failure(live: Holdfast, log: pytest.LogCaptureFixture) -> None:
    log.set_level(logging.DEBUG, logger="holdfast.worker")
    began, let_go = threading.Event(), threading.Event()

    @live.job(name="work")
    def work() -> None:
        began.set()
        let_go.wait(PATIENCE)

    run = work.submit()
    worker = live.worker()
    worker.start()
    assert began.wait(PATIENCE)
    worker.stop(grace=timedelta(0))
    let_go.set()

    assert about(log, run.id) == [
        ("DEBUG", "run ID (work): attempt 1 of 1 starts"),
        ("DEBUG", "run ID (work): attempt 1 of 1 was released without using up the attempt: the worker shut down"),
    ]


@pytest.mark.contract("S3")
def test_a_worker_warns_of_queues_without_a_worker(
    hf: Holdfast, clock: FakeClock, log: pytest.LogCaptureFixture
) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    @hf.schedule(every=60, name="nightly", queue="night")
    def nightly() -> None: ...

    film = hf.pipeline("film")

    @film.stage(queue="media")
    def audio() -> list[int]:
        return [1]

    @film.stage(queue="media", after=audio, each="part")
    def cut(part: int) -> int:
        return part

    hf.start()
    register(hf, "w", jobs=hf.jobs.names())
    attempt_log.unserved(hf, ["default"])
    assert log.messages[-1:] == [
        "no live worker serves these queues, so their runs can't start: media (film.audio, film.cut), night (nightly)"
    ]
    log.clear()
    register(hf, "v", jobs=hf.jobs.names(), queues=["media", "night"])
    attempt_log.unserved(hf, ["default"])
    assert log.messages == []


@pytest.mark.contract("S3")
def test_a_starting_worker_warns_of_queues_that_it_does_not_serve(
    live: Holdfast, log: pytest.LogCaptureFixture, database: Database
) -> None:
    @live.job(name="work", queue="mail")
    def work() -> None: ...

    with live.worker():
        pass
    assert "mail (work)" in log.text
    log.clear()
    with live.worker(queues=["mail"]):
        pass
    assert "mail (work)" not in log.text
