"""The machinery without a database: settings, arguments, gather, wake-ups, named queries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from holdfast.jobs.arguments import Arguments, shape_of
from holdfast.jobs.context import Context
from holdfast.runs import result_waiter
from holdfast.runs.result_waiter import Watch
from holdfast.store.group_commit import GroupCommit
from holdfast.store.macros import DIALECTS, expand
from holdfast.store.notifier import Announcer, Notifier, Signal
from holdfast.store.queries import Queries, Statement, named, parse, sources, statements, translate
from holdfast.support import settings
from holdfast.support.errors import (
    InvalidArguments,
    InvalidPolicy,
    InvalidSetting,
    NotSerialisable,
    StoreUnavailable,
    TooLarge,
)

# Settings


def test_the_defaults_need_nothing() -> None:
    loaded = settings.load({}, environ={})
    assert loaded.lease == timedelta(seconds=15)
    assert loaded.tick == timedelta(seconds=1)
    assert loaded.renew_every == timedelta(seconds=5)
    assert (loaded.prefix, loaded.synchronous, loaded.sqlite_module) == ("holdfast_", "full", "sqlite3")


def test_what_is_given_wins_over_the_environment_and_none_is_not_given() -> None:
    environ = {"HOLDFAST_LEASE": "30", "HOLDFAST_TICK": "2", "HOLDFAST_SOLO": "true", "OTHER": "x"}
    loaded = settings.load({"lease": 60, "tick": None}, environ=environ)
    assert (loaded.lease, loaded.tick, loaded.solo) == (timedelta(seconds=60), timedelta(seconds=2), True)


@pytest.mark.parametrize("value", [20, 20.0, timedelta(seconds=20), "20", "20.0", "PT20S"])
def test_a_duration_is_seconds_or_a_timedelta(value: Any) -> None:
    assert settings.load({"lease": value}, environ={}).lease == timedelta(seconds=20)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(InvalidSetting) as caught:
        settings.load({"concurrency": 0, "prefix": "!", "nonsense": 1}, environ={})
    assert all(name in str(caught.value) for name in ("concurrency", "prefix", "nonsense"))


# Arguments


def arguments(fn: Any) -> Arguments:
    return Arguments(fn, job="work")


def test_a_context_is_found_by_its_annotation_and_is_no_argument() -> None:
    def work(first: int, context: Context, last: str = "x") -> None: ...

    found = arguments(work)
    assert (found.context_name, found.names) == ("context", ("first", "last"))
    assert found.encode((1,), {"last": "y"}, max_bytes=100)[0] == '{"first":1,"last":"y"}'


def test_an_annotation_that_can_not_be_resolved_leaves_the_others_as_they_are() -> None:
    def work(context: Context, number: int, odd: OnlyForTypeCheckers) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    found = arguments(work)
    assert found.context_name == "context"
    with pytest.raises(InvalidArguments, match="number"):
        found.encode(("one", 2), {}, max_bytes=100)
    assert found.encode((1, "anything"), {}, max_bytes=100)[0] == '{"number":1,"odd":"anything"}'


def test_arguments_must_come_back_as_they_went_in() -> None:
    def work(value: Any) -> None: ...

    for good in (1, "x", [1, None], {"a": 1.5}):
        text, _ = arguments(work).encode((good,), {}, max_bytes=100)
        assert arguments(work).decode(text) == {"value": good}
    for bad in ((1, 2), {1: 2}, b"\xff", object()):
        with pytest.raises(NotSerialisable):
            arguments(work).encode((bad,), {}, max_bytes=100)


def test_how_large_arguments_may_be_is_counted_in_bytes() -> None:
    def work(text: str) -> None: ...

    assert arguments(work).encode(("ü" * 43,), {}, max_bytes=100)
    with pytest.raises(TooLarge, match="101 bytes"):
        arguments(work).encode(("ü" * 45,), {}, max_bytes=100)


def test_the_schema_of_the_arguments_can_be_shown() -> None:
    def work(number: int, name: str = "x") -> None: ...

    schema = arguments(work).json_schema()
    assert schema["required"] == ["number"]
    assert set(schema["properties"]) == {"number", "name"}


def test_a_function_that_takes_what_can_not_be_named_is_refused() -> None:
    def star(*numbers: int) -> None: ...
    def double_star(**numbers: int) -> None: ...
    def positional(number: int, /) -> None: ...

    for fn in (star, double_star, positional):
        with pytest.raises(InvalidPolicy, match="by name"):
            arguments(fn)


def test_a_result_that_no_longer_fits_its_type_comes_back_as_plain_json() -> None:
    def work() -> int: ...  # type: ignore[empty-body]

    assert arguments(work).decode_result("3") == 3
    assert arguments(work).decode_result('{"once":"a dict"}') == {"once": "a dict"}


def test_a_step_without_types_is_stored_as_plain_json() -> None:
    def untyped(x):  # type: ignore[no-untyped-def]
        return x

    assert shape_of(untyped).decode("[1]") == [1]


# Gather


def test_a_lone_caller_pays_nothing_extra() -> None:
    batches: list[Sequence[int]] = []

    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        batches.append(batch)
        return [2 * item for item in batch]

    gather = GroupCommit(work)
    assert [gather.do(1), gather.do(2)] == [2, 4]
    assert batches == [[1], [2]]


def test_a_crowd_shares_batches_and_each_gets_its_own_answer() -> None:
    batches: list[int] = []
    pause = threading.Event()

    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        batches.append(len(batch))
        while len(batches) == 1 and len(gather._waiting) < 29:
            pause.wait(0.001)  # the other threads gather behind the first
        return [2 * item for item in batch]

    gather = GroupCommit(work, limit=10)
    with ThreadPoolExecutor(30) as pool:
        assert list(pool.map(gather.do, range(90))) == [2 * n for n in range(90)]
    assert batches[:3] == [1, 10, 10]
    assert max(batches) <= 10


def test_an_answer_that_is_an_error_is_raised_to_its_own_caller_only() -> None:
    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        return [ValueError(item) if item == 3 else item for item in batch]

    async def scene() -> list[Any]:
        gather = GroupCommit(work)
        return await asyncio.gather(*(gather.ado(n) for n in range(6)), return_exceptions=True)

    answers = asyncio.run(scene())
    assert [type(answer) for answer in answers] == [int, int, int, ValueError, int, int]


def test_a_batch_that_fails_is_halved_down_to_the_culprit() -> None:
    seen: list[Sequence[int]] = []

    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        seen.append(list(batch))
        if 5 in batch:
            raise RuntimeError("five")
        return list(batch)

    async def scene() -> list[Any]:
        gather = GroupCommit(work)
        return await asyncio.gather(*(gather.ado(n) for n in range(16)), return_exceptions=True)

    answers = asyncio.run(scene())
    assert [n for n, answer in enumerate(answers) if isinstance(answer, Exception)] == [5]
    assert [5] in seen


def test_a_database_that_is_away_is_told_to_all_at_once() -> None:
    calls: list[int] = []

    def work(batch: Sequence[int]) -> Sequence[int | Exception]:
        calls.append(len(batch))
        raise StoreUnavailable("away")

    async def scene() -> list[Any]:
        gather = GroupCommit(work)
        return await asyncio.gather(*(gather.ado(n) for n in range(16)), return_exceptions=True)

    assert all(isinstance(answer, StoreUnavailable) for answer in asyncio.run(scene()))
    assert sum(calls) == 16, "a batch was tried in halves although no half can succeed"


# Wake-ups


def test_a_signal_is_taken_by_one_wait_and_never_lost_before_it() -> None:
    signal = Signal()
    assert signal.wait(0) is False
    signal.set()
    signal.set()
    assert signal.wait(0) is True
    assert signal.wait(0) is False


def test_listeners_hear_every_commit_until_they_leave() -> None:
    notifier = Notifier()
    heard: list[tuple[set[str], list[str]]] = []
    leave = notifier.listen(lambda names, ended: heard.append((names, ended)))
    notifier.committed({"mail"}, ["r1"])
    notifier.heard({""})
    leave()
    notifier.committed({"mail"}, [])
    assert heard == [({"mail"}, ["r1"]), ({""}, [])]


def test_rings_for_other_processes_are_gathered_and_none_is_lost() -> None:
    told: list[set[str]] = []
    first, go = threading.Event(), threading.Event()

    def announce(names: set[str]) -> None:
        told.append(set(names))
        first.set()
        go.wait(60)

    announcer = Announcer(announce)
    announcer.tell({"a"})
    assert first.wait(60)
    for number in range(50):
        announcer.tell({f"q{number}"})
    go.set()
    announcer.close()
    assert told[0] == {"a"}
    assert set().union(*told) == {"a", *(f"q{n}" for n in range(50))}
    assert len(told) < 10


# Named queries


@pytest.mark.parametrize(
    ("style", "expected", "bound"),
    [
        ("named", "select :b, :a, :b", {"a": 1, "b": 2}),
        ("pyformat", "select %(b)s, %(a)s, %(b)s", {"a": 1, "b": 2}),
        ("qmark", "select ?, ?, ?", (2, 1, 2)),
        ("dollar", "select $1, $2, $3", (2, 1, 2)),
    ],
)
def test_parameters_are_written_in_the_drivers_own_style(style: Any, expected: str, bound: object) -> None:
    query = translate("q", "select :b, :a, :b;", prefix="holdfast_", style=style)
    assert query.text == expected
    assert query.bind({"a": 1, "b": 2}) == bound


def test_quotes_casts_comments_and_percents_are_no_parameters() -> None:
    text = "-- a :comment\nselect ':quoted', x::text, 10 % 3\nfrom t\nwhere a = :a"
    query = translate("q", text, prefix="holdfast_", style="pyformat")
    assert query.parameters == ("a",)
    assert "':quoted', x::text, 10 %% 3" in query.text
    assert "comment" not in query.text


@pytest.mark.parametrize("values", [{}, {"a": 1, "b": 2}, {"b": 1}])
def test_a_missing_or_unknown_parameter_is_our_own_error(values: dict[str, object]) -> None:
    query = translate("q", "select :a", prefix="holdfast_", style="named")
    with pytest.raises(KeyError, match="q takes"):
        query.bind(values)


def test_the_prefix_is_replaced_everywhere_and_a_schema_only_where_it_may_stand() -> None:
    text = (
        "create index holdfast_ix_runs on holdfast_runs (id); create trigger holdfast_tr_x on holdfast_runs; "
        "alter table holdfast_runs add constraint holdfast_ck_runs check (id > 0)"
    )
    assert named(text, "work_").count("holdfast_") == 0
    assert named(text, "s.work_") == (
        "create index work_ix_runs on s.work_runs (id); create trigger work_tr_x on s.work_runs; "
        "alter table s.work_runs add constraint work_ck_runs check (id > 0)"
    )


def test_a_dialects_statement_wins_over_the_common_one() -> None:
    for dialect in DIALECTS:
        found = sources(dialect)
        own = {one.name: one.text for one in statements() if dialect in one.dialects}
        assert own
        texts = {one.name: one.text for one in statements() if not one.dialects} | own
        assert found == {name: expand(text, dialect) for name, text in texts.items()}


@pytest.mark.parametrize(
    ("text", "sqlite", "postgres", "sqlserver"),
    [
        (
            "select a from t where id in {ids} and kind in {kinds}",
            "select a from t where id in (select value from json_each(:ids)) "
            "and kind in (select value from json_each(:kinds))",
            "select a from t where id = any (array(select json_array_elements_text(cast(:ids as json)))) "
            "and kind = any (array(select json_array_elements_text(cast(:kinds as json))))",
            "select a from t where id in (select k.value collate latin1_general_100_bin2 "
            "from openjson(:ids) with (value varchar(100) '$') as k) "
            "and kind in (select k.value collate latin1_general_100_bin2 "
            "from openjson(:kinds) with (value nvarchar(1000) '$') as k)",
        ),
        (
            "select a from t {unlocked} order by a limit :most {postgres: for update} {sqlserver: option (recompile)}",
            "select a from t order by a limit :most",
            "select a from t order by a limit :most for update",
            "select a from t with (readpast, readcommittedlock) order by a offset 0 rows fetch next :most rows only "
            "option (recompile)",
        ),
        (
            "select r.n from {rows: run_id id, n bigint} as r",
            "select r.n from (select value ->> 'run_id' as run_id, value ->> 'n' as n from json_each(:rows)) as r",
            "select r.n from json_to_recordset(cast(:rows as json)) as r (run_id text, n bigint)",
            "select r.n from (select j.run_id collate latin1_general_100_bin2 as run_id, j.n as n "
            "from openjson(:rows) with (run_id varchar(100), n bigint) as j) as r",
        ),
        (
            "{insert t: a id, b = :now, c time;\n unless a; returning a, c}",
            "insert into t (a, b, c) select r.a, :now, r.c "
            "from (select value ->> 'a' as a, value ->> 'c' as c from json_each(:rows)) as r "
            "where true on conflict do nothing returning a, c",
            "insert into t (a, b, c) select r.a, :now, r.c "
            "from json_to_recordset(cast(:rows as json)) as r (a text, c timestamptz) "
            'order by r.a collate "C" on conflict do nothing returning a, c',
            "insert into t (a, b, c) output inserted.a, inserted.c select r.a, :now, r.c "
            "from (select j.a collate latin1_general_100_bin2 as a, j.c as c "
            "from openjson(:rows) with (a varchar(100), c datetime2(6)) as j) as r "
            "where not exists (select 1 from t as o where o.a = r.a) order by r.a",
        ),
        (
            "update holdfast_t as o\nset n = r.n\nfrom {rows: a int, n int} as r\nwhere o.a = r.a",
            "update holdfast_t as o set n = r.n "
            "from (select value ->> 'a' as a, value ->> 'n' as n from json_each(:rows)) as r where o.a = r.a",
            "update holdfast_t as o set n = r.n "
            "from json_to_recordset(cast(:rows as json)) as r (a integer, n integer) where o.a = r.a",
            "update o set n = r.n from (select j.a as a, j.n as n from openjson(:rows) with (a int, n int) as j) as r "
            "inner join holdfast_t as o with (rowlock) on o.a = r.a option (force order, loop join)",
        ),
        (
            "delete from holdfast_t\nwhere id in {ids}\nreturning id, n",
            "delete from holdfast_t where id in (select value from json_each(:ids)) returning id, n",
            "delete from holdfast_t where id = any (array(select json_array_elements_text(cast(:ids as json)))) "
            "returning id, n",
            "delete t output deleted.id, deleted.n from (select k.value collate latin1_general_100_bin2 "
            "from openjson(:ids) with (value varchar(100) '$') as k) as i (id) "
            "inner join holdfast_t as t with (rowlock) on t.id = i.id where t.id is not null "
            "option (force order, loop join)",
        ),
    ],
    ids=["list", "limit and locks", "rows", "insert", "update", "delete"],
)
def test_a_macro_is_spelt_as_each_dialect_has_it(text: str, sqlite: str, postgres: str, sqlserver: str) -> None:
    for dialect, expected in {"sqlite": sqlite, "postgres": postgres, "sqlserver": sqlserver}.items():
        assert " ".join(expand(text, dialect).split()) == expected


@pytest.mark.parametrize(
    "text",
    [
        "select r.a from {rows: a float} as r",
        "select {nonsense}",
        "{insert t}",
        "select 1 {oracle: for update}",
        "select 1 {seek}",
        "select 1 }",
        "select 1 where a not in {ids}",
    ],
)
def test_an_unknown_macro_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unknown"):
        expand(text, "sqlite")


@pytest.mark.parametrize(
    "text",
    [
        "delete from holdfast_t\nwhere id in {ids}\nand n = 1",
        "delete from holdfast_t where id in {ids}\n-- and a remark",
        "update holdfast_t\nset n = r.n\nfrom {rows: id id, n int} as r\nwhere holdfast_t.id = r.id",
        "update holdfast_t as o\nset n = r.n\nfrom {rows: id id, n int} as r\nwhere o.id = r.id\nreturning n",
    ],
)
def test_a_form_that_sql_server_could_not_be_given_by_seeks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="SQL Server needs a text of its own"):
        expand(text, "sqlserver")


def test_a_file_of_statements_is_read_by_name_and_dialect() -> None:
    text = "-- A subject.\n\n-- name: one\n-- Why.\nselect 1\n\n-- name: one (sqlite, postgres)\nselect\n    2\n"
    assert parse({"x.sql": text}) == (
        Statement("one", (), "-- Why.\nselect 1", "x.sql"),
        Statement("one", ("sqlite", "postgres"), "select\n    2", "x.sql"),
    )


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("select 1", "without a name"),
        ("select 1\n-- name: one\nselect 1", "without a name"),
        ("-- name: one (oracle)\nselect 1", "one is for oracle; known: sqlite"),
    ],
)
def test_a_statement_that_no_one_would_find_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(ValueError, match=refusal):
        parse({"x.sql": text})


@pytest.mark.parametrize(
    ("first", "second"),
    [("one", "one"), ("one (sqlite)", "one (sqlite)"), ("one (sqlite, postgres)", "one (postgres)")],
)
def test_a_name_that_is_given_twice_is_refused(first: str, second: str) -> None:
    texts = {
        "a.sql": f"-- name: {first}\nselect 1\n\n-- name: other\nselect 1",
        "b.sql": f"-- name: {second}\nselect 2",
    }
    with pytest.raises(ValueError, match=r"b\.sql: one has two texts"):
        parse(texts)


def test_a_statement_can_be_replaced_to_break_a_rule_on_purpose() -> None:
    queries = Queries("sqlite", style="named", replaced={"find_due": "select 1"})
    assert queries["find_due"].text == "select 1"
    assert queries.styled("qmark")["find_due"].text == "select 1"
    assert "find_due" in set(queries)


def test_pauses_between_looks_at_a_run_grow_to_a_quarter_of_a_second_however_long_it_runs() -> None:
    watch, now, pauses = Watch("run", lambda answer: None, reads=False), 1000.0, list[float]()
    for _ in range(20_000):
        watch.look_later(now)
        pauses.append(watch.due - now)
        now = watch.due
    assert all(0 < pause <= 1.01 * result_waiter.FIRST for pause in pauses[:3])
    assert all(0.1 < pause <= 0.26 for pause in pauses[20:])


def test_runs_that_are_long_waited_for_are_looked_at_together() -> None:
    watches = [Watch(str(number), lambda answer: None, reads=False) for number in range(100)]
    for number, watch in enumerate(watches):
        watch.due = 1000.0 + number / 100
        while watch.due < 1010:
            watch.look_later(watch.due)
    looks = {watch.due for watch in watches}
    assert len(looks) <= 3
