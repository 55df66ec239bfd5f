"""Query plans: with 100,000 rows, the frequent statements use an index on PostgreSQL and on SQLite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from tests.codebase.hot_statements import HOT, NOW, run_id, values
from tests.codebase.sample_rows import FILL, filled
from tests.postgres import PostgresServer

from holdfast import Count, Holdfast, RunFilter
from holdfast.operate.search import BUDGET, search_runs
from holdfast.store.queries import sources

# Tables that grow over time or with the number of waiting runs. There are few leases and workers at any time.
LARGE = {"runs", "ready", "waits", "outcomes", "key_locks", "dependencies"}
LARGE |= {"events", "steps", "artifacts", "unique_runs", "builds", "slots", "rates"}
# Statements that read only the first row of a table, although the plan says that they scan it.
FIRST_ROW = {"pulse": {"dependencies"}, "count_states": {"waits", "ready"}}
FIRST_ROW |= {"find_change_markers": {"runs", "events"}}  # these read only the last entry of an index
# Partial indexes that contain only the rows to process; reading all of such an index is intended.
SHORT_INDEXES = {
    "ix_waits_unchecked",
    "ix_waits_due",
    "ix_waits_pending_action",
    "ix_key_locks_open",
    "ix_runs_pipelines",
}
SHORT_INDEXES |= {"ix_runs_depends_on", "ix_events_operator", "ix_waits_slots"}
# Statements that must not sort; a plan that sorts has read more rows than needed.
UNSORTED = ("take_ready", "find_due", "find_unchecked", "find_open_key_locks", "find_turns")


@pytest.fixture(scope="module")
def on_postgres(postgres: PostgresServer) -> Iterator[Holdfast]:
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute("create database plans")
    url = postgres.url_of("plans")
    with Holdfast(url) as hf:
        hf.start()
        with psycopg.connect(url, autocommit=True) as connection:
            for first, last, text in FILL:
                connection.execute(
                    filled(
                        text,
                        id="lpad(g::text, 26, '0')",
                        now=f"timestamptz '{NOW.isoformat()}'",
                        later=f"timestamptz '{NOW.isoformat()}' + interval '1 hour'",
                        then=f"timestamptz '{NOW.isoformat()}' + g * interval '1 second'",
                        series=f"generate_series({first}, {last}) as g",
                    )
                )
            connection.execute("analyze")
        yield hf
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute("drop database plans with (force)")


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Holdfast]:
    path = tmp_path_factory.mktemp("plans") / "plans.db"
    with Holdfast(f"sqlite:///{path}", synchronous="normal") as hf:

        def fill(tx: Any) -> None:
            for first, last, text in FILL:
                tx.execute_ddl(
                    filled(
                        text,
                        id="printf('%026d', g)",
                        now="'2026-06-01 00:00:00.000000'",
                        later="'2026-06-01 01:00:00.000000'",
                        then="datetime('2026-06-01', '+' || g || ' seconds') || '.000000'",
                        series=f"(with recursive s (g) as (select {first} union all select g + 1 from s "
                        f"where g < {last}) select g from s)",
                    )
                )

        hf.do(fill)
        yield hf


def explain(hf: Holdfast, name: str, how: str) -> list[tuple[Any, ...]]:
    """The plan of a statement with realistic values. With `analyze` in `how`, it is also executed."""
    with hf.store.transaction() as tx:
        query = hf.store.queries[name]
        bound = query.bind(tx._bound(query, values(query)))
        rows, _, _ = tx._session.execute(f"{how} {query.text}", bound)
        return [tuple(row) for row in rows]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def problems_of(name: str, plan: dict[str, Any]) -> list[str]:
    """Return the problems of a PostgreSQL plan."""
    wrong = []
    for node in nodes(plan):
        table = str(node.get("Relation Name", "")).removeprefix("holdfast_")
        if node["Node Type"] == "Seq Scan" and table in LARGE - FIRST_ROW.get(name, set()):
            wrong.append(f"a sequential scan of {table}")
        if node["Node Type"] in ("Index Scan", "Index Only Scan") and table in LARGE and "Index Cond" not in node:
            index = str(node["Index Name"]).removeprefix("holdfast_")
            if (
                index not in SHORT_INDEXES
                and table not in FIRST_ROW.get(name, set())
                and name != "find_dependencies_after"
            ):
                wrong.append(f"all of index {index}")
        if node["Node Type"] in ("Sort", "Incremental Sort") and name in UNSORTED and node["Plan Rows"] > 1000:
            wrong.append(f"a sort of {node['Plan Rows']} rows")
    return wrong


@pytest.mark.parametrize("name", HOT)
def test_postgres_uses_an_index(on_postgres: Holdfast, name: str) -> None:
    [[[found]]] = explain(on_postgres, name, "explain (format json)")
    assert problems_of(name, found["Plan"]) == [], found


def test_finding_the_next_run_of_a_key_reads_few_rows_even_if_thousands_wait(on_postgres: Holdfast) -> None:
    """30,000 runs wait for the key `hot`. The actual numbers of rows are checked, because estimates may be wrong."""
    [[[found]]] = explain(on_postgres, "find_turns", "explain (analyze, format json)")
    read = [node["Actual Rows"] for node in nodes(found["Plan"]) if node.get("Relation Name") == "holdfast_waits"]
    assert read
    assert max(read) <= 2, found


@pytest.mark.parametrize("name", [name for name in HOT if ":limit" not in sources("postgres")[name]])
def test_postgres_uses_an_index_in_generic_plans(on_postgres: Holdfast, name: str) -> None:
    """PostgreSQL may choose a generic plan for a prepared statement, so that plan must use an index, too.

    Statements with a limit are left out: with an unknown limit the generic plan costs far more, so it is never chosen.
    """
    query = on_postgres.store.queries.styled("dollar")[name]
    with psycopg.connect(on_postgres.settings.url, autocommit=True) as connection:
        row = connection.execute(f"explain (generic_plan, format json) {query.text}").fetchone()
    assert row is not None
    assert problems_of(name, row[0][0]["Plan"]) == [], row[0]


@pytest.mark.parametrize("name", HOT)
def test_sqlite_uses_an_index(on_sqlite: Holdfast, name: str) -> None:
    steps = [str(row[3]) for row in explain(on_sqlite, name, "explain query plan")]
    assert problems_of_steps(name, on_sqlite.store.queries[name].text, steps) == [], steps


def problems_of_steps(name: str, text: str, steps: list[str]) -> list[str]:
    """Return the problems of a SQLite plan."""
    aliases = dict(re.findall(r"holdfast_(\w+) as (\w+)", text))
    by_alias = {alias: table for table, alias in aliases.items()}
    wrong = []
    for step in steps:
        if step.startswith("MATERIALIZE holdfast_run_view"):
            wrong.append(step)  # all runs are read first, to build the view
        if scan := re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX holdfast_(\w+))?", step):
            table = by_alias.get(scan[1], scan[1].removeprefix("holdfast_"))
            if table in LARGE - FIRST_ROW.get(name, set()) and scan[2] not in SHORT_INDEXES:
                wrong.append(step)
    if name == "find_dependencies_after":  # a page in the order of the primary key, with a limit
        wrong = [step for step in wrong if "USING" in step]
    return wrong


# Searches: one statement reads from the place that the filter selects, up to a maximum number of rows.


SEARCHES = {
    "queued": RunFilter(state="queued"),
    "running": RunFilter(state="running"),
    "ended": RunFilter(state="succeeded"),
    "runs": RunFilter(),
    "job": RunFilter(job="work"),
    "parent": RunFilter(parent=run_id(400_001)),
    "no match": RunFilter(state="succeeded", queue="nowhere"),
    "error": RunFilter(error="nothing"),
    "argument": RunFilter(job="work", args={"a.b": "c"}),
    "time": RunFilter(since=NOW - timedelta(days=900), until=NOW),
}


class RecordingTransaction:
    """A transaction that only records the statement and its parameters."""

    def all(self, name: str, /, **given: object) -> list[Any]:
        self.name, self.given = name, given
        return []


def recorded_parameters(wanted: RunFilter, *, budget: int, limit: int) -> dict[str, object]:
    tx: Any = RecordingTransaction()
    search_runs(tx, wanted, limit=50)
    return {**tx.given, "budget": budget, "limit": limit}


@pytest.mark.parametrize("which", SEARCHES)
@pytest.mark.parametrize(("budget", "limit"), [(51, 51), (10_000, 51), (10_001, 1)])
def test_a_search_on_postgres_reads_a_bounded_number_of_rows(
    on_postgres: Holdfast, which: str, budget: int, limit: int
) -> None:
    """A search reads a bounded number of rows of the place it searches, and the run of each row only once."""
    query = on_postgres.store.queries["find_matching"]
    with on_postgres.store.reading() as tx:
        bound = query.bind(tx._bound(query, recorded_parameters(SEARCHES[which], budget=budget, limit=limit)))
        [[[found]]] = tx._session.execute(f"explain (analyze, format json) {query.text}", bound)[0]
    read: Counter[str] = Counter()
    for node in nodes(found["Plan"]):
        if table := node.get("Relation Name"):
            rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            read[table] += rows * node["Actual Loops"]
    assert max(read.values(), default=0) <= 2 * budget + 200, (read, found)


@pytest.mark.parametrize("which", SEARCHES)
@pytest.mark.parametrize(("budget", "limit"), [(51, 51), (10_000, 51), (10_001, 1)])
def test_a_search_on_sqlite_reads_a_bounded_number_of_rows(
    on_sqlite: Holdfast, which: str, budget: int, limit: int
) -> None:
    """Counts SQLite's steps: about 100 for each row that is read. Reading all rows would take tens of millions."""
    query = on_sqlite.store.queries["find_matching"]
    steps = 0

    def counted() -> int:
        nonlocal steps
        steps += 1000
        return 0

    with on_sqlite.store.reading() as tx:
        bound = query.bind(tx._bound(query, recorded_parameters(SEARCHES[which], budget=budget, limit=limit)))
        connection = tx._session._execute.__self__  # type: ignore[attr-defined]
        connection.set_progress_handler(counted, 1000)
        try:
            tx._session.execute(query.text, bound)
        finally:
            connection.set_progress_handler(None, 0)
    assert steps <= 200 * budget + 20_000


SLOTS = {
    "running": ("outcome = 'running'", 5),
    "queued": ("outcome = 'queued'", 1),
    "lately": ("claimed_at > '2026-06-04 11:39:50+00:00'", 11),
    "a slot": ("job_name = 'feeds' and scheduled_for = '{at}'", 1),
    "a run": (f"run_id = '{run_id(250_000)}'", 1),
}
"""Conditions on the view of slots, and how many of about 100,000 slots match each."""


@pytest.mark.contract("J4")
@pytest.mark.parametrize("which", SLOTS)
def test_the_slot_view_on_postgres_reads_only_the_requested_rows(on_postgres: Holdfast, which: str) -> None:
    condition, expected = SLOTS[which]
    text = f"select * from holdfast_slot_view where {condition}".format(at="2026-06-03 21:26:40+00:00")
    with psycopg.connect(on_postgres.settings.url) as connection:
        row = connection.execute(f"explain (analyze, format json) {text}").fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    assert problems_of("slots", plan) == [], plan
    assert plan["Actual Rows"] == expected
    assert sum(_read(node) for node in nodes(plan) if "slots" in node.get("Relation Name", "")) < 200, plan


@pytest.mark.contract("J9")
def test_slots_that_have_not_started_are_found_without_reading_the_others(
    on_postgres: Holdfast, on_sqlite: Holdfast
) -> None:
    [[[found]]] = explain(on_postgres, "find_queued_slots", "explain (analyze, format json)")
    assert problems_of("find_queued_slots", found["Plan"]) == [], found
    rows, steps = counting(on_sqlite, on_sqlite.store.queries["find_queued_slots"].text)
    assert (len(rows), steps < 5000) == (1, True), steps


def _read(node: dict[str, Any]) -> float:
    rows: float = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
    return rows


@pytest.mark.contract("J4")
@pytest.mark.parametrize("which", SLOTS)
def test_the_slot_view_on_sqlite_reads_only_the_requested_rows(on_sqlite: Holdfast, which: str) -> None:
    """Counts steps, because the plan names every branch of the view, even if a constant excludes it."""
    condition, expected = SLOTS[which]
    text = f"select * from holdfast_slot_view where {condition}".format(at="2026-06-03 21:26:40.000000")
    rows, steps = counting(on_sqlite, text.replace("+00:00", ".000000"))
    assert (len(rows), steps < 5000) == (expected, True), steps


def counting(hf: Holdfast, text: str) -> tuple[Sequence[Any], int]:
    """Execute a query on SQLite; return its rows and the number of steps."""
    steps = 0

    def counted() -> int:
        nonlocal steps
        steps += 100
        return 0

    with hf.store.reading() as tx:
        connection = tx._session._execute.__self__  # type: ignore[attr-defined]
        connection.set_progress_handler(counted, 100)
        try:
            rows = tx._session.execute(text, None)[0]
        finally:
            connection.set_progress_handler(None, 0)
    return rows, steps


def test_a_page_of_a_long_history_uses_the_tested_plan(on_postgres: Holdfast, on_sqlite: Holdfast) -> None:
    for hf in (on_postgres, on_sqlite):
        page = hf.search(RunFilter(state="succeeded"), limit=50)
        assert [run.id for run in page.items] == [run_id(number) for number in range(301_200, 301_150, -1)]
        assert page.searched == 50
        none = hf.search(RunFilter(state="succeeded", queue="nowhere"))
        assert (none.items, none.searched, none.next is not None) == ((), BUDGET, True)
        assert hf.counts()["succeeded"] == Count(10_000, True)


def test_a_plan_without_its_index_is_detected(on_postgres: Holdfast, on_sqlite: Holdfast) -> None:
    """The checks above can fail: here they find a plan without its index, and a scan of a table."""
    with psycopg.connect(on_postgres.settings.url) as connection:
        connection.execute("drop index holdfast_ix_ready_order")
        query = on_postgres.store.queries.styled("dollar")["pulse"]
        row = connection.execute(f"explain (generic_plan, format json) {query.text}").fetchone()
        connection.rollback()
    assert row is not None
    assert problems_of("pulse", row[0][0]["Plan"]) != []
    with on_sqlite.store.reading() as tx:
        text = "select * from holdfast_waits as w where w.reason = 'x'"
        rows, _, _ = tx._session.execute(f"explain query plan {text}", None)
    assert problems_of_steps("a slow one", text, [str(row[3]) for row in rows]) == ["SCAN w"]


def test_postgres_claims_by_the_index_even_without_analyze(postgres_url: str) -> None:
    with Holdfast(postgres_url) as hf:

        @hf.job(name="work")
        def work(number: int) -> None: ...

        work.submit_many([{"number": number} for number in range(5000)])
        query = hf.store.queries["take_ready"]
        given = {"queue": "default", "jobs": '["work"]', "limit": 100, "from_rank": -(2**31), "from_id": ""}
        with hf.store.transaction() as tx:
            lines = [row[0] for row in tx._session.execute(f"explain {query.text}", given)[0]]
        plan = "\n".join(lines)
        assert "Index Scan using holdfast_ix_ready_order" in plan
        assert "Sort" not in plan
        assert "Bitmap" not in plan
