"""Bounded reads: reports read a bounded number of rows, even with 60,000 finished runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from tests.postgres import PostgresServer

from holdfast import Holdfast, Policy
from holdfast.runs.limits import queues
from holdfast.statistics import failures, overview, rollups
from holdfast.store.transaction import Transaction
from holdfast.testing import FakeClock

NOW = datetime(2026, 6, 3, tzinfo=UTC)
FINISHED = 60_000
READY, WAITING = 6_000, 10_500

# Of the finished runs, one in five failed and one in fifty timed out. They ended in the order of their numbers, four
# per second.
FILL = (
    (
        FINISHED + READY + WAITING,
        "insert into holdfast_runs (id, job, queue, priority, args, policy, tags, created_at) "
        "select {id}, 'job' || (g % 7), 'q' || (g % 3), 0, '[]', '{policy}', '[]', {then}",
    ),
    (
        FINISHED,
        "insert into holdfast_outcomes "
        "select {id}, case when g % 5 = 0 then 'failed' when g % 50 = 1 then 'timed_out' else 'succeeded' end, "
        "'ERROR', 'Traceback' || {long} || 'ValueError: no document ' || g, 'null', 1, 1, 0, 'w1', {then}, {then}",
    ),
    (
        READY,
        "insert into holdfast_ready (run_id, job, queue, rank, claim, attempt, takeovers) "
        "select {waiting}, 'work', 'q' || (g % 3), -(g % 2), 0, 0, 0",
    ),
    (
        WAITING,
        "insert into holdfast_waits "
        "(run_id, job, queue, rank, claim, attempt, takeovers, dependencies_left, unchecked, entered_at) "
        "select {delayed}, 'work', 'late', 0, 0, 0, 0, 0, 0, {then}",
    ),
    (
        15_000,
        "insert into holdfast_rollups "
        "select case g % 3 when 0 then 1 when 1 then 10 else 60 end, 'job' || (g % 7), 'q' || (g % 5), {minute}, "
        "'failed', 1, '{nothing}', '{nothing}'",
    ),
    (300, "insert into holdfast_rollups select 1, '*', '*', {minute}, 'failed', 1, '{nothing}', '{nothing}'"),
    (
        1_000,
        "insert into holdfast_rollups "
        "select 0, 'job' || (g % 7), 'q' || g, '1970-01-01 00:00:00+00:00', 'failed', 1, '{nothing}', '{nothing}'",
    ),
)

POSTGRES = {
    "id": "lpad(g::text, 26, '0')",
    "waiting": f"lpad((g + {FINISHED})::text, 26, '0')",
    "delayed": f"lpad((g + {FINISHED + READY})::text, 26, '0')",
    "then": f"timestamptz '{NOW.isoformat()}' - ({FINISHED} - g) / 4 * interval '1 second'",
    "minute": f"timestamptz '{NOW.isoformat()}' - g * interval '1 minute'",
    "long": "repeat('x', 60)",
}
SQLITE = {
    "id": "printf('%026d', g)",
    "waiting": f"printf('%026d', g + {FINISHED})",
    "delayed": f"printf('%026d', g + {FINISHED + READY})",
    "then": f"datetime('{NOW:%Y-%m-%d}', printf('%+d seconds', (g - {FINISHED}) / 4)) || '.000000'",
    "minute": f"datetime('{NOW:%Y-%m-%d}', '-' || g || ' minutes') || '.000000'",
    "long": "printf('%.60c', 'x')",
}
NOTHING = '{"counts":{"3":1},"seconds":1.0}'

# Each report, with the maximum number of rows that it may read from tables and indexes together.
REPORTS: dict[str, tuple[Callable[[Holdfast], Any], int]] = {
    "overview": (lambda hf: hf.statistics.overview(), 30_000),
    "series": (lambda hf: hf.statistics.series(timedelta(hours=5)), 1_000),
    "series of a day": (lambda hf: hf.statistics.series(timedelta(days=1), job="job1"), 15_000),
    "series of a queue": (lambda hf: hf.statistics.series(timedelta(days=30), queue="q1"), 15_000),
    "failures": (lambda hf: hf.statistics.failures(), 5_000),
    "jobs": (lambda hf: hf.statistics.jobs(), 2_000),
    "queues": (lambda hf: hf.queues.list(), 25_000),
    "figures": (lambda hf: hf.statistics.metrics(), 30_000),
    "a slice": (lambda hf: hf.read(lambda tx: rollups.read(tx, NOW - timedelta(hours=10))), 30_000),
}


def filled(text: str, count: int, words: dict[str, str], series: str) -> str:
    known = {"policy": Policy().to_json(), "nothing": NOTHING} | words
    for name, word in known.items():
        text = text.replace(f"{{{name}}}", word)
    return f"{text} from {series.format(count=count)}"


@pytest.fixture(scope="module")
def on_postgres(postgres: PostgresServer) -> Iterator[Holdfast]:
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute("create database bounded")
    url = postgres.url_of("bounded")
    with Holdfast(url, clock=FakeClock(NOW + timedelta(minutes=1))) as hf:
        hf.start()
        with psycopg.connect(url, autocommit=True) as connection:
            for count, text in FILL:
                connection.execute(filled(text, count, POSTGRES, "generate_series(1, {count}) as g"))
            connection.execute("analyze")
        yield hf
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute("drop database bounded with (force)")


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holdfast]:
    path = tmp_path_factory.mktemp("bounded") / "bounded.db"
    series = "(with recursive s (g) as (select 1 union all select g + 1 from s where g < {count}) select g from s)"
    with Holdfast(f"sqlite:///{path}", clock=FakeClock(NOW + timedelta(minutes=1)), synchronous="normal") as hf:

        def fill(tx: Transaction) -> None:
            for count, text in FILL:
                tx.execute_ddl(filled(text, count, SQLITE, series))

        hf.do(fill)
        yield hf


def rows_read(url: str) -> int:
    """The number of rows read from this database so far, by sequential scans and from indexes."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(
            "select (select sum(seq_tup_read) from pg_stat_user_tables) "
            "+ (select sum(idx_tup_read) from pg_stat_user_indexes)"
        ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("which", REPORTS)
def test_a_report_on_postgres_reads_a_bounded_number_of_rows(on_postgres: Holdfast, which: str) -> None:
    """Runs each report several times, so that PostgreSQL may choose a generic plan for its prepared statement."""
    report, most = REPORTS[which]
    url, times = on_postgres.settings.url, 8

    def rows_so_far() -> int:
        on_postgres.read(lambda tx: tx.execute_ddl("select pg_stat_force_next_flush()"))
        return rows_read(url)

    before = rows_so_far()
    for _ in range(times):
        assert report(on_postgres)
    read = (rows_so_far() - before) / times
    assert 0 < read <= most


@pytest.mark.parametrize("which", REPORTS)
def test_a_report_on_sqlite_takes_a_bounded_number_of_steps(on_sqlite: Holdfast, which: str) -> None:
    """Counts the steps of SQLite's virtual machine: about 30 for each row that is read."""
    report, most = REPORTS[which]
    assert report(on_sqlite)
    steps = 0

    def counted() -> int:
        nonlocal steps
        steps += 1000
        return 0

    connections = [one for one in (*on_sqlite.store._pool.idle, on_sqlite.store._writer) if one is not None]
    with contextlib.ExitStack() as stack:
        for connection in connections:
            connection.set_progress_handler(counted, 1000)
            stack.callback(connection.set_progress_handler, None, 0)
        assert report(on_sqlite)
    assert 0 < steps <= 30 * most


def test_a_bounded_count_says_that_it_is_incomplete(on_sqlite: Holdfast) -> None:
    found = on_sqlite.statistics.overview()
    seen = {one.name: one for one in found.queues}
    assert (seen["q1"].ready, seen["q1"].more) == (READY // 3, False)
    assert (seen["late"].waiting, seen["late"].more) == (queues.MOST + 1, True)
    assert found.pace.runs <= overview.NEWEST
    assert found.pace.since > NOW - overview.RECENT
    assert sum(group.runs for group in on_sqlite.statistics.failures(limit=100)) == failures.NEWEST
