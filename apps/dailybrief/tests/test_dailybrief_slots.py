"""Slots of the scheduled jobs: each is claimed once, at its exact time, and recorded in `job_runs`."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest
from apps.dailybrief import job_runs, schedules, services, tables
from apps.dailybrief.cron_trigger import WallClockTrigger
from apps.dailybrief.job_runs import JobRun
from apps.dailybrief.settings import Settings
from apps.shared.database import Database
from sqlalchemy import Connection, text

from holdfast import GiveUp, Holdfast, InvalidSetting, NoWorker, SlotTaken, StillRunning
from holdfast.runs import workers
from holdfast.support.ids import Ids
from holdfast.testing import FakeClock, Manual

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
NAMED = f"host:1:{services.WORKER}:0123456789"
COLUMNS = [
    "id",
    "job_name",
    "scheduled_for",
    "started_at",
    "finished_at",
    "status",
    "worker_instance",
    "error_message",
]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The databases that the application supports."""
    if request.param == "sqlite":
        yield request.getfixturevalue("template").copy(tmp_path)
    else:
        with request.getfixturevalue("schemas").lend(empty=False) as found:
            yield found


@pytest.fixture
def store(url: str, hf: Holdfast) -> Iterator[Database]:
    with closing(open_store(url)) as found:
        with found.read():
            pass
        yield found


def open_store(url: str) -> Database:
    return Database(url, tables.Table.metadata, prepare=lambda: None, complete=job_runs.create)


@pytest.fixture
def newsroom(hf: Holdfast, manual: Manual, store: Database) -> Holdfast:
    """The four schedules with default settings, and functions that only return their slot."""
    add_all(hf, Settings())
    assert manual.schedule() == 0
    manual.worker(NAMED, queues=[schedules.QUEUE]).register()
    return hf


def add_all(hf: Holdfast, settings: Settings) -> None:
    for schedule in schedules.job_schedules(settings):
        schedules.add(hf, schedule, settings.zone, _function())


def _function() -> Any:
    def function(scheduled_for: datetime) -> str:
        return scheduled_for.isoformat()

    return function


def rows(store: Database, job_name: str | None = None) -> list[JobRun]:
    with store.read() as session:
        return list(reversed(job_runs.latest(session, limit=1000, job_name=job_name)))


def outcomes(hf: Holdfast, job: str) -> list[str]:
    return [f"{slot.scheduled_for:%H:%M} {slot.outcome}" for slot in hf.schedules.slots(job, last=100, next=0)]


# Options


@pytest.mark.contract("J10")
def test_every_job_has_max_instances_coalesce_and_misfire_grace_time(
    newsroom: Holdfast,
) -> None:
    for name, schedule in newsroom.scheduled.items():
        assert (schedule.max_instances, schedule.coalesce, schedule.misfire_grace) == (1, True, 5 * MINUTE), name
        assert (schedule.policy.max_attempts, schedule.policy.on_crash, schedule.policy.keep_forever) == (
            1,
            "fail",
            True,
        )
        assert schedule.queue.startswith("dailybrief")


@pytest.mark.contract("J10")
@pytest.mark.parametrize("job", range(4), ids=schedules.PREFIXES.values())
def test_each_job_has_its_own_options(job: int) -> None:
    prefix = list(schedules.PREFIXES.values())[job].upper()
    given = {
        f"DAILYBRIEF_{prefix}_COALESCE": "false",
        f"DAILYBRIEF_{prefix}_MISFIRE_GRACE_TIME": "900",
        f"DAILYBRIEF_{prefix}_MAX_INSTANCES": "1",
    }
    options = [
        (one.max_instances, one.coalesce, one.misfire_grace_time)
        for one in schedules.job_schedules(Settings.load(given))
    ]
    expected: list[Any] = [(1, True, 5 * MINUTE)] * 4
    expected[job] = (1, False, 15 * MINUTE)
    assert options == expected


@pytest.mark.contract("J6")
def test_the_timeout_of_a_job_is_twice_its_expected_time(newsroom: Holdfast) -> None:
    timeouts = {name: schedule.policy.timeout for name, schedule in newsroom.scheduled.items()}
    assert timeouts == {
        "rss_ingestion": 10 * MINUTE,
        "event_clustering": 10 * MINUTE,
        "retention_cleanup": 20 * MINUTE,
        "publish_brief": 4 * MINUTE,
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("INGESTION_AT", "often", "five fields"),
        ("INGESTION_AT", "61 * * * *", "higher than the maximum"),
        ("RETENTION_AT", "0 3 * * 1", "by name"),
        ("TIMEZONE", "Mars/Olympus", "no time zone is named"),
        ("CLUSTERING_MISFIRE_GRACE_TIME", "-1", "greater than"),
        ("RETENTION_MAX_INSTANCES", "2", "less than or equal to 1"),
        ("PUBLISHING_COALESCE", "perhaps", "boolean"),
        ("MISFIRE_GRACE", "300", "no such setting"),
        ("FEED_LIMIT", "3", "no such setting"),
    ],
)
def test_an_invalid_setting_is_refused_with_its_name(name: str, value: str, message: str) -> None:
    with pytest.raises(InvalidSetting, match=message) as caught:
        Settings.load({f"DAILYBRIEF_{name}": value})
    assert f"DAILYBRIEF_{name}" in str(caught.value)


# One claim per slot


@pytest.mark.contract("J3")
def test_only_one_of_a_thousand_claims_of_a_slot_succeeds(url: str, newsroom: Holdfast, store: Database) -> None:
    slot, claimants, triggers = START + HOUR, 8, 125
    won: list[str] = []
    lost: list[str | None] = []
    barrier = threading.Barrier(claimants)

    def claim(number: int) -> None:
        with Holdfast(url, ids=Ids(seed=100 + number)) as hf:
            add_all(hf, Settings())
            barrier.wait()
            for _ in range(triggers):
                try:
                    won.append(hf.schedules.trigger("rss_ingestion", scheduled_for=slot).id)
                except SlotTaken as error:
                    lost.append(error.run_id)

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(claimants)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(won), len(lost)) == (1, claimants * triggers - 1)
    assert set(lost) == set(won), "the error names the run that has the slot"
    assert [(run.id, run.scheduled_for, run.status) for run in rows(store)] == [(won[0], slot, "running")]


@pytest.mark.contract("J11", "J7", "J3")
def test_a_triggered_slot_is_claimed_like_a_scheduled_one(
    newsroom: Holdfast, manual: Manual, clock: FakeClock, store: Database
) -> None:
    slot = START + 10 * MINUTE
    newsroom.schedules.trigger("rss_ingestion", scheduled_for=slot, by="ann")
    with pytest.raises(StillRunning):
        newsroom.schedules.trigger("rss_ingestion", scheduled_for=slot + MINUTE)
    manual.run_all()
    with pytest.raises(SlotTaken):
        newsroom.schedules.trigger("rss_ingestion", scheduled_for=slot)

    clock.advance(11 * MINUTE)
    manual.run_all()

    assert [(run.scheduled_for, run.status) for run in rows(store, "rss_ingestion")] == [(slot, "success")], "once"


# Time


@pytest.mark.contract("J10", "J3")
@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ({}, ["missed"] * 4 + ["ran"]),
        ({"ingestion_misfire_grace_time": 3600}, ["coalesced"] * 4 + ["ran"]),
        ({"ingestion_misfire_grace_time": 3600, "ingestion_coalesce": False}, None),
        ({"clustering_misfire_grace_time": 3600, "clustering_coalesce": False}, ["missed"] * 4 + ["ran"]),
    ],
)
def test_slots_missed_by_a_stopped_worker_follow_the_options(
    hf: Holdfast, manual: Manual, clock: FakeClock, store: Database, terms: dict[str, Any], expected: list[str] | None
) -> None:
    add_all(hf, Settings(**terms))
    manual.schedule()
    clock.advance(51 * MINUTE)
    manual.run_all()

    found = [line.split()[1] for line in outcomes(hf, "rss_ingestion")]
    if expected is None:  # all slots are due, and slots that would overlap an active run are skipped
        assert (len(found), set(found) <= {"ran", "skipped"}) == (5, True)
    else:
        assert found == expected
    ran = [run.scheduled_for for run in rows(store, "rss_ingestion")]
    assert len(ran) == found.count("ran")
    assert START + 50 * MINUTE in ran or expected is None


@pytest.mark.contract("J5")
@pytest.mark.parametrize(
    ("cron", "day", "expected"),
    [
        # Clocks go forward at 01:00 UTC: 02:30 does not exist, and the slot is at 03:30 local time.
        ("30 2 * * *", "2026-03-29", ["01:30"]),
        ("55 23 * * *", "2026-03-29", ["21:55"]),
        ("0,30 * * * *", "2026-03-29", [f"{minute // 60:02}:{minute % 60:02}" for minute in range(0, 1440, 30)]),
        # Clocks go back at 01:00 UTC: 02:30 occurs twice, and a daily job is due at the first.
        ("30 2 * * *", "2026-10-25", ["00:30"]),
        ("55 23 * * *", "2026-10-25", ["22:55"]),
        ("0,30 * * * *", "2026-10-25", [f"{minute // 60:02}:{minute % 60:02}" for minute in range(0, 1440, 30)]),
    ],
)
def test_slots_are_right_on_both_days_when_clocks_change(cron: str, day: str, expected: list[str]) -> None:
    trigger = WallClockTrigger(cron, ZoneInfo("Europe/Berlin"))
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    found: list[datetime] = []
    at = trigger.get_next_fire_time(None, begin)
    while at is not None and at.astimezone(UTC) < begin + timedelta(days=1):
        found.append(at.astimezone(UTC))
        at = trigger.get_next_fire_time(None, found[-1] + timedelta(microseconds=1))
    assert [f"{slot:%H:%M}" for slot in found] == expected


@pytest.mark.contract("J5")
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_when_clocks_change_each_hour_has_its_slot_and_the_brief_is_published_once(
    hf: Holdfast, manual: Manual, clock: FakeClock, store: Database, day: str, hours: int
) -> None:
    zone = ZoneInfo("Europe/Berlin")
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone).astimezone(UTC)
    clock.jump(midnight - MINUTE - clock.now())
    times: dict[str, Any] = {"ingestion_at": "0 * * * *", "clustering_at": "5 4 * * *", "retention_at": "30 2 * * *"}
    times |= {f"{job}_misfire_grace_time": HOUR for job in schedules.PREFIXES.values()}
    add_all(hf, Settings(timezone=zone.key, **times))
    manual.schedule()
    clock.advance(MINUTE)
    for _ in range(hours):
        manual.run_all()
        clock.advance(HOUR)
    clock.advance(-MINUTE)
    manual.run_all()

    slots = [run.scheduled_for for run in rows(store, "rss_ingestion")]
    assert slots == [midnight + number * HOUR for number in range(hours)]
    assert len(rows(store, "publish_brief")) == len(rows(store, "retention_cleanup")) == 1


# The audit log


@pytest.mark.contract("J4", "J8")
def test_job_runs_has_every_status_with_its_times(
    newsroom: Holdfast, manual: Manual, clock: FakeClock, store: Database
) -> None:
    clock.advance(10 * MINUTE + timedelta(seconds=2))
    manual.orchestrate()
    [running] = rows(store)
    assert (running.status, running.finished_at, running.worker_instance) == ("running", None, "manual")
    assert (running.scheduled_for, running.started_at) == (START + 10 * MINUTE, clock.now()), "claimed, but not started"
    worker = manual.worker("host:2:k2dailybrief-worker:0", queues=[schedules.QUEUE])
    [claim] = worker.claim()
    clock.advance(MINUTE)
    worker.renew(claim)
    assert rows(store)[0].worker_instance == "host:2:k2dailybrief-worker:0"
    worker.finish(claim)
    [done] = rows(store)
    assert (done.status, done.started_at, done.finished_at) == ("success", running.started_at, clock.now())
    assert done.error_message is None


@pytest.mark.contract("J4", "J8")
def test_job_runs_has_the_error_of_a_failed_job(
    hf: Holdfast, manual: Manual, clock: FakeClock, store: Database
) -> None:
    def broken(scheduled_for: datetime) -> None:
        raise OSError("the disk is full")

    schedules.add(hf, schedules.job_schedules(Settings())[0], ZoneInfo("UTC"), broken)
    manual.schedule()
    clock.advance(10 * MINUTE)
    manual.run_all()
    [failed] = rows(store)
    assert (failed.status, failed.finished_at) == ("failed", clock.now())
    assert "the disk is full" in (failed.error_message or "")


@pytest.mark.contract("J6", "J7", "J4")
def test_a_run_that_timed_out_on_a_silent_worker_has_status_skipped_timeout_and_the_next_slot_runs(
    newsroom: Holdfast, manual: Manual, clock: FakeClock, store: Database
) -> None:
    clock.advance(10 * MINUTE)
    manual.orchestrate()
    worker = manual.worker("silent", queues=[schedules.QUEUE])
    [claim] = worker.claim()
    while clock.now() < START + 19 * MINUTE:  # the worker sends heartbeats, then stops
        clock.advance(timedelta(seconds=5))
        worker.renew(claim)
    clock.advance(2 * MINUTE)
    manual.run_all()

    stuck, after = rows(store, "rss_ingestion")
    assert (stuck.status, stuck.finished_at, stuck.worker_instance) == ("skipped_timeout", clock.now(), "silent")
    assert (after.scheduled_for, after.status) == (START + 20 * MINUTE, "success")
    assert newsroom.verify() == []


@pytest.mark.contract("J9", "J6")
@pytest.mark.parametrize("begun", [True, False])
def test_a_run_of_a_dead_worker_is_failed_as_recovered_even_if_it_timed_out(url: str, begun: bool) -> None:
    """It is certain that the worker died, but not that the run itself took too long. The same holds for a slot that was
    claimed but not started."""
    schedule = replace(schedules.job_schedules(Settings())[0], expected=timedelta(milliseconds=1))
    with Holdfast(url, poll_interval=0.1, lease=1) as hf:
        store = open_store(url)
        schedules.add(hf, schedule, ZoneInfo("UTC"), _function())
        Manual(hf).schedule()
        dead = Manual(hf).worker(NAMED, queues=[schedules.QUEUE])
        dead.register()
        hf.schedules.trigger(schedule.name, scheduled_for=START)
        assert len(dead.claim() if begun else []) == int(begun)
        hf.do(lambda tx: workers.remove(tx, NAMED))
        with hf.worker(queues=[schedules.QUEUE], exclusive=services.WORKER, unknown="fail"):
            [row] = rows(store)
            assert (row.status, row.error_message, row.worker_instance) == ("failed", job_runs.RECOVERED, NAMED)
            assert row.finished_at is not None
        store.close()


@pytest.mark.contract("J11", "J10", "J2")
def test_a_run_fails_if_it_has_no_slot_or_started_late_or_is_on_another_worker(
    newsroom: Holdfast, manual: Manual, clock: FakeClock, store: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    from apps.dailybrief import jobs

    monkeypatch.setattr(jobs, "database", store)
    monkeypatch.setattr(jobs, "hf", newsroom)

    def refused(run_id: str) -> str | None:
        ctx: Any = SimpleNamespace(run=SimpleNamespace(id=run_id))
        try:
            jobs._require_slot(ctx)
        except GiveUp as error:
            return error.failure_type
        return None

    run_id = newsroom.schedules.trigger("rss_ingestion", scheduled_for=START - HOUR).id
    assert refused("a run without a slot") == "NO_SLOT"
    manual.worker(NAMED, queues=[schedules.QUEUE]).claim()
    clock.advance(5 * MINUTE)
    assert refused(run_id) is None, "a triggered slot may be in the past; its grace time counts from the claim"
    clock.advance(timedelta(seconds=1))
    assert refused(run_id) == "MISFIRED", "claimed, but not started in time"

    other = newsroom.schedules.trigger("event_clustering", scheduled_for=START).id
    manual.worker("host:2:worker:1", queues=[schedules.QUEUE]).claim()
    assert refused(other) == "WRONG_WORKER"


@pytest.mark.contract("J4")
def test_any_sql_client_can_read_the_audit_log(
    url: str, newsroom: Holdfast, manual: Manual, clock: FakeClock, store: Database
) -> None:
    clock.advance(10 * MINUTE)
    manual.run_all()
    question = "select * from job_runs where job_name = 'rss_ingestion' order by started_at desc"
    connection: Any = (
        sqlite3.connect(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else psycopg.connect(url)
    )
    with closing(connection):
        cursor = connection.execute(question)
        assert [column[0] for column in cursor.description] == COLUMNS
        [row] = cursor.fetchall()
    assert row[COLUMNS.index("status")] == "success"
    assert str(row[COLUMNS.index("scheduled_for")]).startswith("2026-01-01 00:10:00")


@pytest.mark.contract("J4")
def test_job_runs_has_the_columns_of_the_specification_and_their_types(store: Database) -> None:
    with store.read() as session:
        if store.is_sqlite:  # SQLite has one type for texts and times, and no type for computed columns
            rows = session.connection().exec_driver_sql("pragma table_info(job_runs)").all()
            found = {name: kind or "TEXT" for _, name, kind, *_ in rows}
            assert found == dict.fromkeys(COLUMNS, "TEXT")
            return
        question = (
            "select attname, format_type(atttypid, atttypmod) from pg_attribute "
            "where attrelid = 'job_runs'::regclass and attnum > 0 order by attnum"
        )
        found = {row[0]: row[1] for row in session.connection().exec_driver_sql(question)}
    assert list(found) == COLUMNS
    assert found == {
        "id": "text",
        "job_name": "character varying(128)",
        "scheduled_for": "timestamp with time zone",
        "started_at": "timestamp with time zone",
        "finished_at": "timestamp with time zone",
        "status": "character varying(16)",
        "worker_instance": "character varying(128)",
        "error_message": "text",
    }


@pytest.mark.contract("J4", "J3")
def test_the_application_adds_only_a_view_of_the_engines_view(store: Database) -> None:
    on_sqlite = "select name from sqlite_master where type = 'index' and tbl_name like 'holdfast_%' and sql is not null"
    on_postgres = "select indexname from pg_indexes where schemaname = current_schema() and tablename like 'holdfast_%'"
    with store.read() as session:
        found = session.execute(text(on_sqlite if store.is_sqlite else on_postgres)).scalars().all()
    assert [name for name in found if not name.startswith("holdfast_")] == []
    assert set(re.findall(r"holdfast_\w+", job_runs.VIEW)) == {"holdfast_slot_view"}


MANY = 100_000
CONDITIONS = {
    "status = 'running'": 2,
    "started_at > '{late}'": 12,
    "job_name = 'rss_ingestion' and scheduled_for = '{middle}'": 1,
    "id = '{id}'": 1,
}


@pytest.fixture
def a_long_log(store: Database) -> Database:
    """100,000 slots, one per minute, of which the last two have not ended, and as many other key locks."""
    sqlite = store.is_sqlite
    each = (
        f"(with recursive s (g) as (select 1 union all select g + 1 from s where g < {MANY}) select g from s)"
        if sqlite
        else f"generate_series(1, {MANY}) as g"
    )
    number = "printf('%026d', g)" if sqlite else "lpad(g::text, 26, '0')"
    at = (
        "datetime('2026-01-01', '+' || g || ' minutes') || '.000000'"
        if sqlite
        else "timestamptz '2026-01-01 00:00:00+00' + g * interval '1 minute'"
    )
    with store.write() as session:
        for statement in (
            "insert into holdfast_slots (job, slot_at, state, run_id, manual, claimed_at, claimed_by) "
            f"select 'rss_ingestion', {at}, 'claimed', {number}, 0, {at}, 'w' from {each}",
            "insert into holdfast_outcomes (run_id, state, claim, attempt, takeovers, holder, finished_at) "
            f"select {number}, case when g / 1000 * 1000 = g then 'failed' else 'succeeded' end, 1, 1, 0, 'w', {at} "
            f"from {each} where g <= {MANY - 2}",
            f"insert into holdfast_key_locks (run_key, key_number, run_id) select 'k' || g, 1, 'held' || g from {each}",
            "insert into holdfast_key_locks (run_key, key_number, run_id) "
            f"select 'schedule:rss_ingestion', g, {number} from {each} where g > {MANY - 2}",
        ):
            session.connection().exec_driver_sql(statement)
        session.connection().exec_driver_sql("analyze") if not sqlite else None
    return store


@pytest.mark.contract("J4")
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_query_on_a_long_log_reads_only_matching_rows(a_long_log: Database, condition: str) -> None:
    zone = ".000000" if a_long_log.is_sqlite else "+00:00"
    late, middle = (f"{START + minutes * MINUTE:%Y-%m-%d %H:%M:%S}{zone}" for minutes in (MANY - 12, MANY // 2))
    query = f"select * from job_runs where {condition.format(late=late, middle=middle, id=f'{77:026d}')}"
    with a_long_log.read() as session:
        if a_long_log.is_sqlite:
            found, read = _steps(session.connection(), query)
            assert read < 5000, "steps of the SQLite virtual machine; a full scan takes a million"
        else:
            [[[plan]]] = session.connection().exec_driver_sql(f"explain (analyze, format json) {query}").all()
            found = plan["Plan"]["Actual Rows"]
            assert {node["Node Type"] for node in _nodes(plan["Plan"]) if _is_large(node)} <= INDEXED, plan
            assert sum(_rows(node) for node in _nodes(plan["Plan"]) if _is_large(node)) < 1000, plan
    assert found == CONDITIONS[condition]


INDEXED = {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _is_large(node: dict[str, Any]) -> bool:
    return node.get("Relation Name") in ("holdfast_slots", "holdfast_outcomes", "holdfast_key_locks")


def _rows(node: dict[str, Any]) -> float:
    rows: float = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return rows


def _steps(connection: Connection, question: str) -> tuple[int, int]:
    """The number of rows, and of the steps that SQLite needed."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 100
        return 0

    driver: Any = connection.connection.driver_connection
    driver.set_progress_handler(count, 100)
    try:
        found = len(connection.exec_driver_sql(question).all())
    finally:
        driver.set_progress_handler(None, 0)
    return found, steps


@pytest.mark.contract("J4")
def test_the_latest_rows_of_a_long_log_are_found(a_long_log: Database) -> None:
    with a_long_log.read() as session:
        assert [int(run.id) for run in job_runs.latest(session, limit=3)] == [MANY, MANY - 1, MANY - 2]
        failed = job_runs.latest(session, limit=2, status="failed")
        assert [int(run.id) for run in failed] == [MANY - 1000, MANY - 2000]


@pytest.mark.contract("J11", "J9")
def test_a_trigger_without_a_running_worker_is_refused(hf: Holdfast, manual: Manual, store: Database) -> None:
    add_all(hf, Settings())
    manual.schedule()
    with pytest.raises(NoWorker, match="no worker is alive"):
        hf.schedules.trigger("rss_ingestion", scheduled_for=START)
    assert rows(store) == []


@pytest.mark.contract("J4")
def test_the_audit_log_is_kept_by_retention(
    newsroom: Holdfast, manual: Manual, clock: FakeClock, store: Database
) -> None:
    clock.advance(10 * MINUTE)
    manual.run_all()
    clock.advance(timedelta(days=400))
    newsroom.prune()
    assert [run.status for run in rows(store, "rss_ingestion")][:1] == ["success"]
