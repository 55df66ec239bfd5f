"""Plans: with a hundred thousand rows the statements of every day go by an index, on PostgreSQL and on SQLite."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from holdfast import Count, Holdfast, Policy, RunFilter, searches
from holdfast.store.queries import Query, sources
from holdfast.testing.postgres import PostgresServer

pytestmark = pytest.mark.timeout(180)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
# Tables that grow without end, or with what waits. Leases and workers are few by nature: as many as run now.
LARGE = {"runs", "ready", "waits", "outcomes", "holds", "needs"}
LARGE |= {"events", "steps", "artifacts", "uniques", "builds", "slots", "rates"}
# A look at the first row of a table is a scan by name only.
FIRST_ROW = {"pulse": {"needs"}, "beat_and_pulse": {"needs"}, "count_states": {"waits", "ready"}}
FIRST_ROW |= {"find_signs": {"runs", "events"}}  # the last one of an index
# Indexes that hold only what is to be looked at: to go through one of these is the point of it.
SHORT_INDEXES = {"ix_waits_look", "ix_waits_due", "ix_waits_errand", "ix_holds_open", "ix_runs_pipelines"}
SHORT_INDEXES |= {"ix_runs_needed", "ix_events_operated"}
# Whoever sorts these has read more than it was asked for.
UNSORTED = ("take_ready", "find_due", "find_looks", "find_open_holds", "find_turns", "list_runs", "read_outcomes")

HOT = [
    "take_ready",
    "take_oldest_ready",
    "delete_leases",
    "renew_leases",
    "guard_leases",
    "find_expired",
    "delete_expired",
    "find_due",
    "come_due",
    "find_looks",
    "clear_looks",
    "find_open_holds",
    "find_turns",
    "take_holds",
    "give_holds",
    "open_holds",
    "delete_open_holds",
    "find_holders",
    "delete_waits",
    "lock_waits",
    "delete_ready",
    "find_needs_on",
    "find_met_needs_of",
    "find_needs_after",
    "delete_needs",
    "delete_needs_of",
    "subtract_needs",
    "pulse",
    "beat_and_pulse",
    "find_signs",
    "get_run",
    "find_runs",
    "find_outcomes",
    "find_idempotent",
    "request_cancel",
    "find_holds",
    "count_waiting_before",
    "list_runs",
    "read_outcomes",
    "find_events",
    "find_steps",
    "find_artifact",
    "find_artifacts",
    "read_artifacts",
    "adopt_artifact",
    "delete_artifact",
    "delete_artifacts_of",
    "find_attempts",
    "find_root",
    "share_runs",
    "find_ended",
    "find_offspring",
    "lock_ended",
    "find_spared",
    "find_served",
    "count_belongings",
    "delete_events_of",
    "delete_old_events",
    "delete_slots_of",
    "find_active",
    "find_slots",
    "find_slot_of",
    "delete_uniques_of",
    "delete_steps_of",
    "delete_outcomes",
    "delete_runs",
    "find_results",
    "find_builds",
    "replace_builds",
    "get_build",
    "list_builds",
    "invalidate_build",
    "delete_builds_of",
    "find_needs_of",
    "find_asks_of",
    "delete_asks",
    "set_must_succeed",
    "delete_asks_of",
    "set_needed",
    "find_expansions",
    "set_expansion",
    "find_segments",
    "share_segments",
    "find_segment_results",
    "count_stages",
    "find_progress",
    "find_troubles",
    "list_segments",
    "count_uses",
    "insert_stops",
    "find_open_children",
    "request_cancels",
    "find_child",
    "list_pipelines",
    "lock_bounds",
    "count_seats",
    "find_places",
    "find_placed",
    "find_key_leases",
    "lock_rates",
    "set_rates",
    "delete_idle_rates",
    "replace_uniques",
    "find_drain",
    "find_snapshots",
    "count_states",
    "find_all_events",
    "find_operations",
    "find_told_steps",
    "find_last_step",
    "find_marks",
    "lock_run",
    "find_kin",
    "find_last_events",
]


def run_id(number: int) -> str:
    return f"{number:026d}"


READY, WAITING, LEASED, ENDED = run_id(50_000), run_id(150_000), run_id(200_500), run_id(250_000)


def values(query: Query) -> dict[str, object]:
    """Something for each parameter, as a worker in the middle of things would give it."""
    row = {
        "run_id": LEASED,
        "attempt": 1,
        "expires_at": NOW + timedelta(seconds=15),
        "key": "k77",
        "needed": READY,
        "count": 1,
        "bad": 0,
        "number": 1,
        "opens": 1,
        "key_limit": 1,
        "wanted": 1,
        "job": "work",
        "idempotency_key": "i5",
        "scope": READY,
        "fingerprint": "f",
        "old_id": READY,
        "since_at": NOW,
        "id": LEASED,
        "parent_id": LEASED,
        "because": "it failed",
        "digest": "d",
        "name": "job:work",
        "turn": 1,
        "started_at": NOW,
    }
    rows = [row, row | {"run_id": WAITING, "key": "hot"}]
    given: dict[str, object] = {
        "queue": "default",
        "queues": ["default"],
        "jobs": ["work", "other"],
        "floor_rank": -2_000_000,
        "floor_id": "",
        "limit": 100,
        "rows": rows,
        "ids": [WAITING, LEASED],
        "holder": "w5",
        "now": NOW,
        "expires_at": NOW + timedelta(seconds=15),
        "id": ENDED,
        "run_id": LEASED,
        "needed": READY,
        "key": "hot",
        "reason": "enough",
        "state": None,
        "tag": None,
        "job": None,
        "before": "~",
        "after": 0 if query.name in ("find_events", "find_all_events") else run_id(210_000),
        "place": ENDED,
        "name": "out.txt",
        "sha256": "x",
        "attempt": 1,
        "first": ENDED,
        "last": f"{ENDED}0",
        "behind": "",
        "since": NOW + timedelta(hours=60),
        "scope": READY,
        "fingerprint": "f",
        "because": None,
        "parent_id": run_id(400_001),
        "stage": "audio",
        "names": ["77", "78"],
        "errand": None,
        "count": 3,
        "spare": None,
    }
    if query.name == "list_runs":
        given |= {"parent_id": None, "parts": 0}
    if query.name in ("find_all_events", "find_told_steps", "count_states"):
        given |= {"tx": 0, "kinds": ["PROGRESS"], "budget": 10_000, "number": 0, "most": 10_001}
    if query.name in ("find_operations", "find_last_events"):
        given |= {"before": 2**62}
    if query.name == "find_progress":
        given |= {"ids": [run_id(400_001), run_id(400_002)]}
    if query.name == "find_troubles":
        given |= {"passed_on": "NEED_FAILED"}
    if query.name == "set_expansion":
        given |= {"first": 1}
    if query.name in ("find_ended", "delete_old_events", "delete_idle_rates"):
        given |= {"state": "succeeded", "before": NOW + timedelta(hours=70)}
    if query.name in ("get_build", "invalidate_build"):
        given |= {"job": "build"}
    if query.name == "find_slots":
        given |= {"job": "work", "before": NOW + timedelta(hours=2)}
    return {name: given[name] for name in query.parameters}


# Filling. The same rows on both: {n} is the number's text, {text} the id made of it, {series} a table of numbers.

POLICY = Policy().to_json()
FILL: list[tuple[int, int, str]] = [
    (
        1,
        301_200,
        "insert into holdfast_runs (id, job, queue, priority, key, args, policy, tags, idempotency_key, again_of, "
        "created_at) "
        "select {id}, 'work', 'default', 0, null, '[]', '{policy}', '[]', "
        "case when {n} <= 1000 then 'i' || {n} end, null, {now}",
    ),
    (
        400_001,
        410_000,
        "insert into holdfast_runs (id, job, queue, priority, args, policy, tags, again_of, kind, created_at) "
        "select {id}, 'video', 'default', 0, '[]', '{policy}', '[]', 'again' || {n}, 'pipeline', {now}",
    ),
    (
        410_001,
        430_000,
        "insert into holdfast_runs "
        "(id, job, queue, priority, args, policy, tags, kind, parent_id, stage, segment, created_at) "
        "select {id}, 'video.audio', 'default', 0, '[]', '{policy}', '[]', 'segment', "
        "'00000000000000000000' || (400001 + {n} % 100), 'audio', 's' || {n}, {now}",
    ),
    (
        1,
        100_000,
        "insert into holdfast_ready {ticket}) select {id}, 'work', 'default', -({n} % 100 / 99), null, 0, 0, 0",
    ),
    (
        100_001,
        130_000,
        "insert into holdfast_waits {ticket}{waited}) select {id}, {waiting}, 'hot', 0, 0, 0, 0, null, '', 0, {now}",
    ),
    (
        130_001,
        170_000,
        "insert into holdfast_waits {ticket}{waited}) "
        "select {id}, {waiting}, 'k' || ({n} % 10000), 0, 0, 0, 0, null, '', 0, {now}",
    ),
    (
        170_001,
        200_000,
        "insert into holdfast_waits {ticket}{waited}) select {id}, {waiting}, null, 0, 0, 0, 0, {later}, '', 0, {now}",
    ),
    (
        200_001,
        200_200,
        "insert into holdfast_waits {ticket}{waited}) "
        "select {id}, {waiting}, 'n' || {n}, 0, 0, 0, 0, null, '', 1, {now}",
    ),
    (
        200_201,
        201_200,
        "insert into holdfast_leases (run_id, job, queue, rank, key, attempt, tries, takeovers, holder, started_at, "
        "expires_at, deadline_at) "
        "select {id}, {waiting}, 'l' || {n}, 1, 1, 0, 'w' || ({n} % 10), {now}, {later}, {later}",
    ),
    (
        201_201,
        301_200,
        "insert into holdfast_outcomes "
        "select {id}, 'succeeded', null, null, 'null', 1, 1, 0, 'w1', {now}, {then}, 'seal'",
    ),
    (0, 9_999, "insert into holdfast_holds select 'k' || {n}, 1, 'held' || {n}"),
    (1, 50, "insert into holdfast_holds select 'open' || {n}, 1, null"),
    (1, 100_000, "insert into holdfast_needs select {id}, 'waiter' || {n}, 1"),
    (
        1,
        20_000,
        "insert into holdfast_events (run_id, kind, attempt, data, happened_at) select {id}, 'LOG', 1, '[]', {now}",
    ),
    (
        20_001,
        40_000,
        "insert into holdfast_events (run_id, kind, attempt, data, happened_at) select null, 'X', null, '[]', {now}",
    ),
    (
        1,
        50,
        "insert into holdfast_events (run_id, kind, data, happened_at) select null, 'OPERATED', '[]', {now}",
    ),
    (1, 20_000, "insert into holdfast_steps select {id}, 'one', '1', 1, 1, {now}, {now}, 0"),
    (1, 20_000, "insert into holdfast_artifacts select {id}, {id}, 'out.txt', 1, 1, 'x', {now}"),
    (1, 20_000, "insert into holdfast_uniques select 'work', {id}, {id}"),
    (1, 20_000, "insert into holdfast_builds select 'build', {id}, 'f', {id}, null, null, {now}"),
    (1, 20_000, "insert into holdfast_rates select {id}, 0, 1, {then}"),
    (1, 20_000, "insert into holdfast_rates select {id}, 1, 1, {now}"),
    (1, 20_000, "insert into holdfast_slots select 'work', {then}, 'ran', {id}, null, null, 0, {now}"),
]


def filled(text: str, **words: str) -> str:
    columns = {
        "ticket": "(run_id, job, queue, rank, key, attempt, tries, takeovers",
        "waited": ", missing, due_at, because, look, since_at",
    }
    return f"{text} from {{series}}".format(policy=POLICY, waiting="'work', 'default', 0", n="g", **columns, **words)


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
    """The plan of a statement, with values as they come; nothing is executed."""
    with hf.store.transaction() as tx:
        query = hf.store.queries[name]
        bound = query.bind(tx._bound(query, values(query)))
        rows, _, _ = tx._session.execute(f"{how} {query.text}", bound)
        return [tuple(row) for row in rows]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def judge(name: str, plan: dict[str, Any]) -> list[str]:
    """What is wrong with a plan of PostgreSQL."""
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
                and name not in ("list_runs", "find_needs_after")
            ):
                wrong.append(f"all of index {index}")
        if node["Node Type"] in ("Sort", "Incremental Sort") and name in UNSORTED and node["Plan Rows"] > 1000:
            wrong.append(f"a sort of {node['Plan Rows']} rows")
    return wrong


@pytest.mark.parametrize("name", HOT)
def test_postgres_goes_by_an_index(on_postgres: Holdfast, name: str) -> None:
    [[[found]]] = explain(on_postgres, name, "explain (format json)")
    assert judge(name, found["Plan"]) == [], found


def test_a_turn_reads_a_row_or_two_of_a_key_for_which_thousands_wait(on_postgres: Holdfast) -> None:
    """30,000 wait for `hot`. An estimate would not tell: it is the rows that were really read that count."""
    [[[found]]] = explain(on_postgres, "find_turns", "explain (analyze, format json)")
    read = [node["Actual Rows"] for node in nodes(found["Plan"]) if node.get("Relation Name") == "holdfast_waits"]
    assert read
    assert max(read) <= 2, found


@pytest.mark.parametrize("name", [name for name in HOT if ":limit" not in sources("postgres")[name]])
def test_postgres_goes_by_an_index_when_it_does_not_look_at_the_values(on_postgres: Holdfast, name: str) -> None:
    """A prepared statement may be planned for any values; that plan must do too.

    With an unknown limit that plan would cost far more than one for the limit as it is, so it is never taken.
    """
    query = on_postgres.store.queries.styled("dollar")[name]
    with psycopg.connect(on_postgres.settings.url, autocommit=True) as connection:
        row = connection.execute(f"explain (generic_plan, format json) {query.text}").fetchone()
    assert row is not None
    assert judge(name, row[0][0]["Plan"]) == [], row[0]


@pytest.mark.parametrize("name", HOT)
def test_sqlite_goes_by_an_index(on_sqlite: Holdfast, name: str) -> None:
    steps = [str(row[3]) for row in explain(on_sqlite, name, "explain query plan")]
    aliases = dict(re.findall(r"holdfast_(\w+) as (\w+)", on_sqlite.store.queries[name].text))
    by_alias = {alias: table for table, alias in aliases.items()}
    wrong = []
    for step in steps:
        if step.startswith("MATERIALIZE holdfast_run"):
            wrong.append(step)  # the view of all runs, read through before anything else
        if scan := re.match(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX holdfast_(\w+))?", step):
            table = by_alias.get(scan[1], scan[1].removeprefix("holdfast_"))
            if table in LARGE - FIRST_ROW.get(name, set()) and scan[2] not in SHORT_INDEXES:
                wrong.append(step)
    if name in ("list_runs", "find_needs_after"):  # a page in the order of the primary key, with a limit
        wrong = [step for step in wrong if "USING" in step]
    assert wrong == [], steps


# Searches: one statement that reads from the place that the filter says, and at most so much of it.

SEARCHES = {
    "queued": RunFilter(state="queued"),
    "running": RunFilter(state="running"),
    "ended": RunFilter(state="succeeded"),
    "runs": RunFilter(),
    "job": RunFilter(job="work"),
    "parent": RunFilter(parent=run_id(400_001)),
    "in vain": RunFilter(state="succeeded", queue="nowhere"),
    "error": RunFilter(error="nothing"),
    "argument": RunFilter(job="work", args={"a.b": "c"}),
    "time": RunFilter(since=NOW - timedelta(days=900), until=NOW),
}


class Asked:
    """A transaction that only notes what it was asked."""

    def all(self, name: str, /, **given: object) -> list[Any]:
        self.name, self.given = name, given
        return []


def asked(wanted: RunFilter, *, budget: int, limit: int) -> dict[str, object]:
    tx: Any = Asked()
    searches.search(tx, wanted, limit=50)
    return {**tx.given, "budget": budget, "limit": limit}


@pytest.mark.parametrize("which", SEARCHES)
@pytest.mark.parametrize(("budget", "limit"), [(51, 51), (10_000, 51), (10_001, 1)])
def test_a_search_on_postgres_reads_no_more_than_it_may(
    on_postgres: Holdfast, which: str, budget: int, limit: int
) -> None:
    """Of its place at most the budget, and each of these runs once: counted, not estimated. It reads as pages do."""
    query = on_postgres.store.queries["find_matching"]
    with on_postgres.store.reading() as tx:
        bound = query.bind(tx._bound(query, asked(SEARCHES[which], budget=budget, limit=limit)))
        [[[found]]] = tx._session.execute(f"explain (analyze, format json) {query.text}", bound)[0]
    read: Counter[str] = Counter()
    for node in nodes(found["Plan"]):
        if table := node.get("Relation Name"):
            rows = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            read[table] += rows * node["Actual Loops"]
    assert max(read.values(), default=0) <= 2 * budget + 200, (read, found)


@pytest.mark.parametrize("which", SEARCHES)
@pytest.mark.parametrize(("budget", "limit"), [(51, 51), (10_000, 51), (10_001, 1)])
def test_a_search_on_sqlite_reads_no_more_than_it_may(on_sqlite: Holdfast, which: str, budget: int, limit: int) -> None:
    """SQLite counts its own steps: about a hundred a row that is looked at; history would take tens of millions."""
    query = on_sqlite.store.queries["find_matching"]
    steps = 0

    def counted() -> int:
        nonlocal steps
        steps += 1000
        return 0

    with on_sqlite.store.reading() as tx:
        bound = query.bind(tx._bound(query, asked(SEARCHES[which], budget=budget, limit=limit)))
        connection = tx._session._execute.__self__  # type: ignore[attr-defined]
        connection.set_progress_handler(counted, 1000)
        try:
            tx._session.execute(query.text, bound)
        finally:
            connection.set_progress_handler(None, 0)
    assert steps <= 200 * budget + 20_000


def test_a_page_of_a_long_history_comes_by_the_way_that_was_proved(on_postgres: Holdfast, on_sqlite: Holdfast) -> None:
    for hf in (on_postgres, on_sqlite):
        page = hf.search(RunFilter(state="succeeded"), limit=50)
        assert [run.id for run in page.runs] == [run_id(number) for number in range(301_200, 301_150, -1)]
        assert page.searched == 50
        vain = hf.search(RunFilter(state="succeeded", queue="nowhere"))
        assert (vain.runs, vain.searched, vain.next is not None) == ((), searches.BUDGET, True)
        assert hf.counts()["succeeded"] == Count(10_000, True)


def test_a_plan_without_its_index_would_be_seen(on_postgres: Holdfast, on_sqlite: Holdfast) -> None:
    """The judges can say no: the same statements with their way barred."""
    with psycopg.connect(on_postgres.settings.url) as connection:
        connection.execute("drop index holdfast_ix_ready_order")
        query = on_postgres.store.queries.styled("dollar")["pulse"]
        row = connection.execute(f"explain (generic_plan, format json) {query.text}").fetchone()
        connection.rollback()
    assert row is not None
    assert judge("pulse", row[0][0]["Plan"]) != []
    with on_sqlite.store.reading() as tx:
        rows, _, _ = tx._session.execute("explain query plan select * from holdfast_waits where because = 'x'", None)
    assert any(str(row[3]).startswith("SCAN holdfast_waits") for row in rows)


def test_postgres_claims_by_the_index_though_no_one_has_analysed_the_queue(postgres_url: str) -> None:
    with Holdfast(postgres_url) as hf:

        @hf.job(name="work")
        def work(number: int) -> None: ...

        work.submit_many([{"number": number} for number in range(5000)])
        query = hf.store.queries["take_ready"]
        given = {"queue": "default", "jobs": '["work"]', "limit": 100, "floor_rank": -(2**31), "floor_id": ""}
        with hf.store.transaction() as tx:
            lines = [row[0] for row in tx._session.execute(f"explain {query.text}", given)[0]]
        plan = "\n".join(lines)
        assert "Index Scan using holdfast_ix_ready_order" in plan
        assert "Sort" not in plan
        assert "Bitmap" not in plan
