"""Schema: what the migrations come to is checked in, so that a migration's true effect is a diff.

After a change: HOLDFAST_SNAPSHOTS=write pytest tests/codebase/test_schema.py
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psycopg
import pytest
from tests.databases import sqlite

from holdfast import Holdfast
from holdfast.store import migrate
from holdfast.store.macros import DIALECTS
from holdfast.testing.postgres import PostgresServer

FOLDER = Path(__file__).parent


def test_the_schema_of_sqlite_is_the_one_checked_in(sqlite_url: str) -> None:
    with Holdfast(sqlite_url) as hf:
        hf.migrate()
    with contextlib.closing(sqlite.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        rows = connection.execute(
            "select sql from sqlite_master where sql is not null and name not like 'sqlite_%' "
            "order by tbl_name, type <> 'table', name"
        ).fetchall()

    compare("sqlite", "\n\n".join(f"{row[0]};" for row in rows))


def test_the_schema_of_postgres_is_the_one_checked_in(postgres: PostgresServer, postgres_url: str) -> None:
    url = postgres.url_of(postgres_url.rpartition("/")[2])  # of a superuser, whose tables are in `public`
    with Holdfast(url) as hf:
        hf.migrate()
    with psycopg.connect(url) as connection:
        rows = connection.execute(POSTGRES_SCHEMA).fetchall()

    compare("postgres", "\n".join(row[0] for row in rows))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_migrations_are_numbered_without_a_gap(dialect: str) -> None:
    found = migrate.migrations(dialect, "holdfast_")
    assert list(found) == list(range(1, migrate.latest("sqlite") + 1))
    assert all(statement for statements in found.values() for statement in statements)


def compare(dialect: str, found: str) -> None:
    snapshot = FOLDER / f"schema.{dialect}.sql"
    if os.environ.get("HOLDFAST_SNAPSHOTS") == "write":
        snapshot.write_text(f"{found}\n", "utf-8")
    assert snapshot.read_text("utf-8") == f"{found}\n"


POSTGRES_SCHEMA = r"""
with described as (
    select
        c.relname as name,
        1 as part,
        a.attnum as number,
        format(
            'column %s.%s %s%s%s%s',
            c.relname,
            a.attname,
            format_type(a.atttypid, a.atttypmod),
            case when o.collname <> 'default' then format(' collate "%s"', o.collname) else '' end,
            case when a.attnotnull then ' not null' else '' end,
            case when a.attidentity = 'a' then ' generated always as identity' else '' end
        ) as line
    from pg_attribute as a
    inner join pg_class as c on c.oid = a.attrelid and c.relkind = 'r'
    left join pg_collation as o on o.oid = a.attcollation
    where c.relnamespace = 'public'::regnamespace and a.attnum > 0 and not a.attisdropped
    union all
    select relname, 2, 0, format('options %s (%s)', relname, array_to_string(reloptions, ', '))
    from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and reloptions is not null
    union all
    select c.relname, 3, 0, format('constraint %s %s', n.conname, pg_get_constraintdef(n.oid))
    from pg_constraint as n
    inner join pg_class as c on c.oid = n.conrelid
    where n.connamespace = 'public'::regnamespace and n.contype <> 'n'
    union all
    select tablename, 4, 0, indexdef
    from pg_indexes
    where schemaname = 'public'
    union all
    select c.relname, 5, 0, pg_get_triggerdef(t.oid)
    from pg_trigger as t
    inner join pg_class as c on c.oid = t.tgrelid
    where not t.tgisinternal
    union all
    select proname, 6, 0, pg_get_functiondef(oid)
    from pg_proc
    where pronamespace = 'public'::regnamespace
    union all
    select viewname, 7, 0, format(E'view %s as\n%s', viewname, definition)
    from pg_views
    where schemaname = 'public'
)

select line
from described
order by name collate "C", part, number, line collate "C"
"""
