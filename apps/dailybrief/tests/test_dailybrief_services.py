"""The two services: only the worker schedules, only one worker is active, and it fails runs of a dead worker."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from apps.dailybrief import services
from apps.dailybrief.tests.feed_server import FeedServer
from apps.dailybrief.tests.two_services import NEVER, TOKEN, Process, TwoServices, sample_feeds
from tests.postgres import PostgresServer
from tests.process.support import wait_for

pytestmark = pytest.mark.timeout(240)

WORKERS = 2
JOBS = ("rss_ingestion", "event_clustering", "retention_cleanup", "publish_brief")
JOBS_OF_A_BRIEF = ("rss_ingestion", "event_clustering", "publish_brief")
EVERY_SECOND = {"DAILYBRIEF_INGESTION_AT": "* * * * * *"}
ONLY_BY_HAND = {"DAILYBRIEF_INGESTION_AT": NEVER}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServices]:
    """Gunicorn with two workers, and a job that is due each second."""
    found = TwoServices(tmp_path_factory.mktemp("services"), **EVERY_SECOND)
    try:
        found.web(workers=WORKERS)
        yield found
    finally:
        found.close()


@pytest.mark.contract("J1")
def test_no_gunicorn_worker_schedules(both: TwoServices) -> None:
    since = time.monotonic()
    answers: dict[int, dict[str, Any]] = {}

    def all_have_answered() -> bool:
        with suppress(KeyError):
            both.client.cookies.clear()
        response = both.client.get("/service", headers={"Connection": "close"})
        answers[response.json()["pid"]] = response.json()
        return len(answers) == WORKERS

    wait_for(all_have_answered, "each worker of Gunicorn has answered")
    for answer in answers.values():
        assert (answer["service"], answer["schedules"], answer["schedulers"]) == ("k2dailybrief-web", False, [])
        assert answer["parent"] == both.started[0].pid
    wait_for(lambda: time.monotonic() - since > 3, "three slots have come due")
    assert both.rows() == []
    assert both.select("select * from holdfast_slots") == []
    assert both.get("/holdfast/api/workers")["workers"] == []


@pytest.mark.contract("J10", "J3")
def test_a_worker_paused_for_five_slots_runs_the_latest_and_records_the_others(both: TwoServices) -> None:
    worker = both.start("apps.dailybrief.worker", HOLDFAST_LEASE="30")
    wait_for(lambda: [row for row in both.rows() if row["job_name"] == "rss_ingestion"], "a slot has come due")
    os.kill(worker.pid, signal.SIGSTOP)
    stopped_at = datetime.now(UTC)
    wait_for(lambda: datetime.now(UTC) > stopped_at + timedelta(seconds=7), "five slots have passed")
    os.kill(worker.pid, signal.SIGCONT)
    first, last = (f"{stopped_at + timedelta(seconds=after):%Y-%m-%d %H:%M:%S}" for after in (1.5, 6))
    question = (
        f"select state from holdfast_slots where job = 'rss_ingestion' and slot_at between '{first}' and '{last}'"
    )

    states = wait_for(lambda: both.select(question), "the slots have a state")
    assert worker.end() == 0

    assert len(states) in (4, 5)
    assert {row["state"] for row in states} == {"coalesced"}, "merged into a later slot"


@pytest.mark.contract("J1")
def test_the_web_process_can_not_become_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    from apps.dailybrief import worker_loop

    monkeypatch.setattr(services, "_current", services.WEB)
    stopped = threading.Event()
    stopped.set()
    monkeypatch.setattr(worker_loop, "stop_event", lambda: stopped)  # if it starts anyway, it ends at once
    with pytest.raises(services.WrongService, match="k2dailybrief-web"):
        worker_loop.run()


@pytest.mark.contract("J1")
def test_a_worker_schedules_only_with_schedules_true() -> None:
    from apps.dailybrief import jobs

    assert set(jobs.hf.jobs.names()) & set(JOBS) == set(JOBS)
    assert jobs.hf.worker().schedules is False, "a plain `holdfast worker` or `holdfast serve --worker`"
    assert jobs.hf.worker(schedules=True).schedules is True


@pytest.mark.contract("J1", "J3")
def test_the_web_service_claims_no_slot_even_if_served_with_a_worker(tmp_path: Path) -> None:
    """`holdfast serve … --worker` runs first beside the real worker and then alone, with a job due each second."""
    found = TwoServices(tmp_path, **EVERY_SECOND)
    try:
        worker = found.worker()
        [ready] = worker.events("worker_ready")
        web = found.start("holdfast", "serve", "apps.dailybrief.web:site", "--worker", "--port", "0")
        url = wait_for(
            lambda: re.search(r"^http://[^\s?]+", web.log.read_text(), re.MULTILINE), "the web service serves"
        )[0]
        before = _claimed(found)
        wait_for(lambda: _claimed(found) >= before + 3, "the worker claims the next slots")
        claimants = found.select("select distinct claimed_by from holdfast_slots")
        assert claimants == [{"claimed_by": ready["worker"]}]

        assert worker.end() == 0
        claimed, stopped = _claimed(found), time.monotonic()
        headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json"}
        service = httpx.get(f"{url.rstrip('/')}/service", headers=headers, timeout=20).json()
        assert (service["service"], service["schedules"]) == ("k2dailybrief-web", False)
        wait_for(lambda: time.monotonic() - stopped > 3, "three slots have come due")
        assert (web.running.poll(), _claimed(found)) == (None, claimed)
    finally:
        found.close()


def _claimed(services: TwoServices) -> int:
    return len(services.select("select * from holdfast_slots"))


@pytest.mark.contract("J1")
def test_an_invalid_setting_ends_the_worker_before_it_changes_anything(tmp_path: Path) -> None:
    found = TwoServices(tmp_path, DAILYBRIEF_TIMEZONE="Mars/Olympus")
    worker = found.start("apps.dailybrief.worker")
    assert worker.running.wait(timeout=60) == 2
    [line] = worker.events("invalid_settings")
    assert "DAILYBRIEF_TIMEZONE" in line["error"]
    assert not found.database.exists()


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def newsroom(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoServices]:
    """Both services; jobs are only triggered by hand."""
    if request.param == "sqlite":
        found = request.getfixturevalue("both")
        found.environment |= ONLY_BY_HAND
        yield found
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("create database dailybrief_services")
    found = TwoServices(tmp_path_factory.mktemp("newsroom"), url=server.url_of("dailybrief_services"))
    try:
        found.web(workers=1)
        yield found
    finally:
        found.close()


@pytest.fixture
def feeds() -> Iterator[FeedServer]:
    with FeedServer().running() as found:
        yield found


def job_process(worker: Process) -> int | None:
    """The process that runs a worker's job."""
    for task in Path(f"/proc/{worker.pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in (task / "children").read_text().split():
                if b"supervisor.py" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return int(child)
    return None


@pytest.mark.contract("J2", "J9", "J3", "J15")
def test_only_one_worker_is_active_and_the_next_worker_fails_the_run_of_a_killed_one(
    newsroom: TwoServices, feeds: FeedServer
) -> None:
    pair = [newsroom.start("apps.dailybrief.worker") for _ in range(2)]  # at once
    second = wait_for(
        lambda: next((one for one in pair if one.running.poll() is not None), None), "one of the two workers has exited"
    )
    [first] = [one for one in pair if one is not second]
    wait_for(lambda: first.events("worker_ready"), "the other worker is ready")
    assert second.running.returncode == 3
    [refusal] = second.events("worker_refused")
    [ready] = first.events("worker_ready")
    assert ready["worker"] in refusal["error"]
    assert f"pid {first.pid}" in refusal["error"]
    assert refusal["code"] == "worker_exists"

    counted = recoveries(newsroom)
    stuck = newsroom.client.post("/feeds", json={"url": feeds.url("silent")}).json()
    slot = datetime.now(UTC).replace(microsecond=0)
    run_id = newsroom.trigger("rss_ingestion", slot).json()["id"]
    wait_for(lambda: feeds.requests_for("silent"), "the job is in the middle of its work")
    child = job_process(first)
    first.kill()
    [row] = [row for row in newsroom.rows() if row["finished_at"] is None]
    assert (row["id"], row["status"]) == (run_id, "running")

    third = newsroom.worker()
    row = newsroom.ended(run_id)
    assert (row["status"], row["error_message"]) == ("failed", "worker_startup_recovery")
    assert row["worker_instance"] == ready["worker"]
    [recovery] = third.events("worker_startup_recovery")
    assert (recovery["runs"], recovery["jobs"][0]["run"]) == (1, run_id)
    [ended] = third.events("job_ended") or wait_for(lambda: third.events("job_ended"), "the end of the run is logged")
    assert (ended["run"], ended["status"], ended["error"]) == (run_id, "failed", "worker_startup_recovery")
    wait_for(lambda: recoveries(newsroom) == counted + 1, "the recovery is counted")
    assert child is not None
    wait_for(lambda: not Path(f"/proc/{child}").exists(), "the job of the killed worker has ended, too")

    assert newsroom.trigger("rss_ingestion", slot).json()["code"] == "slot_taken", "a slot has only one attempt"
    newsroom.client.delete(f"/feeds/{stuck['id']}").raise_for_status()


def recoveries(newsroom: TwoServices) -> int:
    found = re.search(r"^holdfast_startup_takeovers_total (\d+)", newsroom.client.get("/metrics").text, re.MULTILINE)
    return int(found[1]) if found else 0


@pytest.mark.contract("J11", "J7")
def test_the_engine_api_refuses_runs_without_a_slot(newsroom: TwoServices) -> None:
    if not newsroom.get("/holdfast/api/workers")["workers"]:
        newsroom.worker()
    run_id = newsroom.trigger("event_clustering", datetime.now(UTC).replace(microsecond=0)).json()["id"]
    newsroom.ended(run_id)
    before = len(newsroom.rows())
    for path, body in (
        ("/runs", {"job": "event_clustering", "args": {"scheduled_for": "2026-01-01T00:00:00+00:00"}}),
        (f"/runs/{run_id}/again", None),
        ("/runs/again", {"job": "event_clustering"}),
    ):
        refused = newsroom.client.post(f"/holdfast/api{path}", json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "only_from_code")
        assert newsroom.client.get(refused.json()["start_at"]).status_code == 200
    assert len(newsroom.rows()) == before


@pytest.mark.contract("J8", "J12", "J13", "J15", "J16")
def test_a_killed_job_is_failed_and_the_next_slot_does_its_work_once(newsroom: TwoServices) -> None:
    if not newsroom.get("/holdfast/api/workers")["workers"]:
        newsroom.worker()
    worker = next(
        one for one in reversed(newsroom.started) if one.events("worker_ready") and one.running.poll() is None
    )
    with sample_feeds() as addresses:
        for address in addresses:
            newsroom.client.post("/feeds", json={"url": address}).raise_for_status()
        for job in JOBS if newsroom.is_postgres else JOBS_OF_A_BRIEF:
            if job == "rss_ingestion" or newsroom.is_postgres:  # only the long tests kill each job
                run_id = newsroom.trigger(job).json()["id"]
                os.kill(wait_for(lambda: job_process(worker), f"{job} runs in a process"), signal.SIGKILL)
                killed = newsroom.ended(run_id)
                assert killed["status"] == "failed"
                assert "killed" in killed["error_message"]
            assert newsroom.run(job)["status"] == "success"
        for job in ("publish_brief", "rss_ingestion") if newsroom.is_postgres else ("rss_ingestion",):
            assert newsroom.run(job)["status"] == "success", "the job succeeds a second time"

    [articles] = newsroom.select("select count(*) as n, count(distinct url) as urls from raw_articles")
    [links] = newsroom.select("select count(*) as n, count(distinct raw_article_id) as articles from cluster_articles")
    assert articles["n"] == articles["urls"] == links["n"] == links["articles"] >= 20
    assert (
        newsroom.select(
            "select id from clusters c where article_count <> (select count(*) from cluster_articles "
            "where cluster_id = c.id)"
        )
        == []
    )
    assert newsroom.select("select count(*) as n from editions") == [{"n": 1}]
    ends = {line["run"]: line for line in wait_for(lambda: _logged_ends(worker), "the last end is logged")}
    done = [line for line in ends.values() if line["status"] == "success"]
    assert {"duration", "rows", "started_at", "finished_at", "scheduled_for", "error"} <= done[-1].keys()
    [first] = [line["rows"] for line in done if line["job"] == "rss_ingestion" and line["rows"]]
    assert first == articles["n"], "the second ingestion found nothing new"


def _logged_ends(worker: Process) -> list[dict[str, Any]]:
    ends = worker.events("job_ended")
    return ends if sum(line["job"] == "rss_ingestion" and line["status"] == "success" for line in ends) == 2 else []


@pytest.mark.contract("J3", "J8", "J15")
def test_a_job_interrupted_by_a_deployment_is_failed_and_not_repeated(newsroom: TwoServices, feeds: FeedServer) -> None:
    """The worker gets SIGTERM while a job runs that can't end in time. The log has the number of rows it wrote."""
    _end_workers(newsroom)
    worker = newsroom.start("apps.dailybrief.worker", HOLDFAST_SHUTDOWN_GRACE="1")
    wait_for(lambda: worker.events("worker_ready"), "the worker is ready")
    added = [newsroom.client.post("/feeds", json={"url": feeds.url(kind)}).json() for kind in ("good", "silent")]
    slot = datetime.now(UTC).replace(microsecond=0)
    before = _articles(newsroom)
    run_id = newsroom.trigger("rss_ingestion", slot).json()["id"]
    wait_for(lambda: feeds.requests_for("silent"), "the job is in the middle of its work")
    wait_for(lambda: _articles(newsroom) > before, "the job has stored the articles of the other feed")

    assert worker.end() == 0

    [row] = [row for row in newsroom.rows() if row["id"] == run_id]
    assert row["status"] == "failed"
    assert "the worker shut down" in row["error_message"]
    [logged] = [line for line in worker.events("job_ended") if line["run"] == run_id]
    assert (logged["status"], logged["rows"]) == ("failed", _articles(newsroom) - before)
    assert "the worker shut down" in logged["error"]

    next_worker = newsroom.worker()
    assert newsroom.trigger("rss_ingestion", slot).json()["code"] == "slot_taken"
    assert newsroom.run("event_clustering")["status"] == "success"
    assert [row["status"] for row in newsroom.rows() if row["id"] == run_id] == ["failed"], "it is not repeated"
    wait_for(lambda: next_worker.events("job_started"), "the next job is logged")
    assert {line["job"] for line in next_worker.events("job_started")} == {"event_clustering"}
    for feed in added:
        newsroom.client.delete(f"/feeds/{feed['id']}").raise_for_status()


@pytest.mark.contract("J14", "J15")
def test_the_counts_of_deleted_rows_are_logged(newsroom: TwoServices) -> None:
    worker = _live(newsroom)
    ended = newsroom.run("retention_cleanup")
    assert ended["status"] == "success"
    [line] = wait_for(
        lambda: [one for one in worker.events("job_ended") if one["run"] == ended["id"]], "the end of the run is logged"
    )
    assert line["rows"] == line["raw_articles"] + line["clusters"] + line["cluster_articles"]


@pytest.mark.contract("J11")
def test_a_trigger_is_refused_while_no_worker_is_running(newsroom: TwoServices) -> None:
    _end_workers(newsroom)
    before = newsroom.rows()
    refused = newsroom.trigger("rss_ingestion")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_worker")
    assert newsroom.rows() == before


def _articles(newsroom: TwoServices) -> int:
    found: int = newsroom.select("select count(*) as n from raw_articles")[0]["n"]
    return found


def _live(newsroom: TwoServices) -> Process:
    """The running worker, or a new one."""
    alive = [one for one in newsroom.started if one.events("worker_ready") and one.running.poll() is None]
    return alive[-1] if alive else newsroom.worker()


def _end_workers(newsroom: TwoServices) -> None:
    for process in newsroom.started[1:]:
        process.end()


def test_gunicorn_closes_open_streams_on_sigterm(both: TwoServices) -> None:
    web = both.started[0]
    with both.client.stream("GET", "/holdfast/live", params={"topics": "runs"}) as stream:
        assert stream.status_code == 200
        assert web.end() == 0
    log = web.log.read_text()
    assert "Shutting down: Master" in log
    assert "timeout graceful shutdown exceeded" not in log, "the stream had to be cut off"
