"""Raw: the upper limit for Holdfast's own figures, measured with the bare driver on the same tables.

Each claim and each finish is a durable commit of 100 runs.
"""

from __future__ import annotations

import json
import time
from typing import Any

import psycopg

from bench import work
from holdfast.store.dialects.sqlite import SqliteDialect

RUNS, BATCH = 20_000, 100
NOW = "2026-01-01 00:00:00.000000"

CLAIM = {
    "postgres": """
        with chosen as (
            select run_id from holdfast_ready where queue = 'default'
            order by rank, run_id limit 100 for update skip locked
        ), taken as (
            delete from holdfast_ready y using chosen where y.run_id = chosen.run_id returning y.*
        ), leased as (
            insert into holdfast_leases
                (run_id, job, queue, rank, claim, attempt, takeovers, holder, started_at, expires_at)
            select run_id, job, queue, rank, claim + 1, attempt + 1, takeovers, 'raw', now(), now() from taken
            returning run_id
        )
        select l.run_id, r.args, r.policy from leased l join holdfast_runs r on r.id = l.run_id""",
    "sqlite": """
        insert into holdfast_leases
                (run_id, job, queue, rank, claim, attempt, takeovers, holder, started_at, expires_at)
        select run_id, job, queue, rank, claim + 1, attempt + 1, takeovers, 'raw', '2026', '2026'
        from holdfast_ready where queue = 'default' order by rank, run_id limit 100
        returning run_id, (select args from holdfast_runs r where r.id = run_id)""",
}
FINISH = {
    "postgres": """
        with gone as (
            delete from holdfast_leases where run_id = any(%(ids)s) and holder = 'raw' returning run_id
        )
        insert into holdfast_outcomes (run_id, state, result, claim, attempt, takeovers, finished_at)
        select run_id, 'succeeded', 'null', 1, 1, 0, now() from gone""",
}


def drain(url: str) -> float:
    with work.jobs(url) as hf:
        for _ in range(RUNS // 1000):
            hf.jobs["noop"].submit_many([{"x": number} for number in range(1000)])
    return _sqlite(url) if url.startswith("sqlite") else _postgres(url)


def insert(url: str) -> float:
    """Return the rows per second of bulk inserts into one table."""
    with work.jobs(url) as hf:
        hf.start()
    connection: Any = _connect(url)
    rows = [f"{number:026d}" for number in range(20_000)]
    started = time.perf_counter()
    for first in range(0, len(rows), 1000):
        ids = rows[first : first + 1000]
        if url.startswith("sqlite"):
            connection.execute("begin immediate")
            connection.execute(
                "insert into holdfast_runs (id, job, queue, priority, args, policy, tags, created_at) "
                "select value, 'noop', 'default', 0, '{}', '{}', '{}', ? from json_each(?)",
                (NOW, json.dumps(ids)),
            )
            connection.execute("commit")
        else:
            connection.execute(
                "insert into holdfast_runs (id, job, queue, priority, args, policy, tags, created_at) "
                "select id, 'noop', 'default', 0, '{}', '{}', '{}', now() from unnest(%s::text[]) as id",
                (ids,),
            )
    took = time.perf_counter() - started
    connection.close()
    return len(rows) / took


def _postgres(url: str) -> float:
    with psycopg.connect(url, autocommit=True) as connection:
        done = 0
        started = time.perf_counter()
        while ids := [row[0] for row in connection.execute(CLAIM["postgres"]).fetchall()]:
            connection.execute(FINISH["postgres"], {"ids": ids})
            done += len(ids)
        return done / (time.perf_counter() - started)


def _sqlite(url: str) -> float:
    connection = _connect(url)
    done = 0
    started = time.perf_counter()
    while True:
        connection.execute("begin immediate")
        ids = [row[0] for row in connection.execute(CLAIM["sqlite"]).fetchall()]
        given = json.dumps(ids)
        connection.execute("delete from holdfast_ready where run_id in (select value from json_each(?))", (given,))
        connection.execute("commit")
        if not ids:
            break
        connection.execute("begin immediate")
        connection.execute(
            "delete from holdfast_leases where run_id in (select value from json_each(?)) and holder = 'raw'", (given,)
        )
        connection.execute(
            "insert into holdfast_outcomes (run_id, state, result, claim, attempt, takeovers, finished_at) "
            "select value, 'succeeded', 'null', 1, 1, 0, ? from json_each(?)",
            (NOW, given),
        )
        connection.execute("commit")
        done += len(ids)
    took = time.perf_counter() - started
    connection.close()
    return done / took


def _connect(url: str) -> Any:
    if url.startswith("sqlite"):
        return SqliteDialect(url.removeprefix("sqlite:///")).connect()
    return psycopg.connect(url, autocommit=True)
