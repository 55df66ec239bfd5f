"""Named statements: parameters, macros, dialects and files."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.store.macros import DIALECTS, expand
from holdfast.store.queries import Queries, Statement, named, parse, sources, statements, translate


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


def test_quotes_casts_comments_and_percents_are_not_parameters() -> None:
    text = "-- a :comment\nselect ':quoted', x::text, 10 % 3\nfrom t\nwhere a = :a"
    query = translate("q", text, prefix="holdfast_", style="pyformat")
    assert query.parameters == ("a",)
    assert "':quoted', x::text, 10 %% 3" in query.text
    assert "comment" not in query.text


@pytest.mark.parametrize("values", [{}, {"a": 1, "b": 2}, {"b": 1}])
def test_a_missing_or_unknown_parameter_is_an_error(values: dict[str, object]) -> None:
    query = translate("q", "select :a", prefix="holdfast_", style="named")
    with pytest.raises(KeyError, match="q takes"):
        query.bind(values)


def test_the_prefix_is_replaced_everywhere_but_a_schema_only_where_sql_allows_it() -> None:
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
def test_a_macro_is_expanded_for_each_dialect(text: str, sqlite: str, postgres: str, sqlserver: str) -> None:
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
def test_a_form_that_sql_server_cannot_seek_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write a text for SQL Server"):
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
def test_a_statement_without_a_usable_name_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(ValueError, match=refusal):
        parse({"x.sql": text})


@pytest.mark.parametrize(
    ("first", "second"),
    [("one", "one"), ("one (sqlite)", "one (sqlite)"), ("one (sqlite, postgres)", "one (postgres)")],
)
def test_a_duplicate_statement_name_is_refused(first: str, second: str) -> None:
    texts = {
        "a.sql": f"-- name: {first}\nselect 1\n\n-- name: other\nselect 1",
        "b.sql": f"-- name: {second}\nselect 2",
    }
    with pytest.raises(ValueError, match=r"b\.sql: one has two texts"):
        parse(texts)


def test_a_statement_can_be_replaced_in_tests() -> None:
    queries = Queries("sqlite", style="named", replaced={"find_due": "select 1"})
    assert queries["find_due"].text == "select 1"
    assert queries.styled("qmark")["find_due"].text == "select 1"
    assert "find_due" in set(queries)
