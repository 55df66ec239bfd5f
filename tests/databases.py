"""Databases for tests: with all tables and no row. They are made once and used again, because to make the tables takes
longer than most tests do."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg import sql

from holdfast import Holdfast
from holdfast.testing.postgres import PostgresServer

_numbers = itertools.count()


def new_name() -> str:
    return f"test_{os.getpid()}_{next(_numbers)}"


class Template:
    """A file of SQLite that has all tables, to be copied."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "template.db"
        with Holdfast(f"sqlite:///{self._file}") as hf:
            hf.migrate()

    def copy(self, folder: Path) -> str:
        file = folder / f"{new_name()}.db"
        shutil.copyfile(self._file, file)
        return f"sqlite:///{file}"


class Schemas:
    """Schemas of one PostgreSQL, each with a user of its own: so one can see who is still connected.

    A schema is used again if its test has left no connection behind and the tables as they were.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._free: list[str] = []
        self._looks: dict[str, object] = {}

    @contextlib.contextmanager
    def lend(self, *, empty: bool = False) -> Iterator[str]:
        """The URL of a schema with the tables, or of one without."""
        name = self._free.pop() if self._free and not empty else self._make(empty=empty)
        yield self._url(name)
        if not empty and self._is_left(name):
            self._free.append(name)

    def _make(self, *, empty: bool) -> str:
        name = new_name()
        with self._connected() as connection:
            connection.execute(sql.SQL("create role {} superuser login").format(sql.Identifier(name)))
            connection.execute(sql.SQL("create schema {}").format(sql.Identifier(name)))
        if not empty:
            with Holdfast(self._url(name)) as hf:
                hf.migrate()
            with self._connected() as connection:
                self._looks[name] = self._look(connection, name)
        return name

    def _is_left(self, name: str) -> bool:
        """Whether it can be lent again; if so, it has no row any more."""
        with self._connected() as connection:
            connected = connection.execute("select 1 from pg_stat_activity where usename = %s", [name]).fetchall()
            if connected or self._look(connection, name) != self._looks[name]:
                return False
            connection.execute("set session_replication_role = replica")  # no trigger keeps us from it
            tables = connection.execute(_TABLES, [name]).fetchall()
            one = sql.SQL("select {} where exists (select 1 from {}.{})")
            asked = [one.format(sql.Literal(t), sql.Identifier(name), sql.Identifier(t)) for (t,) in tables]
            filled = connection.execute(sql.SQL(" union all ").join(asked)).fetchall()
            if filled:
                each = [sql.Identifier(name, table) for (table,) in filled]
                connection.execute(sql.SQL("truncate {} restart identity").format(sql.SQL(", ").join(each)))
        return True

    def _look(self, connection: psycopg.Connection, name: str) -> object:
        """What the schema has, and its version."""
        query = sql.SQL("select version from {}.holdfast_schema").format(sql.Identifier(name))
        with contextlib.suppress(psycopg.Error):
            version = connection.execute(query).fetchall()
            return version, connection.execute(_LOOK, {"name": name}).fetchall()
        return None

    def _connected(self) -> psycopg.Connection:
        return psycopg.connect(self._server.url, autocommit=True)

    def _url(self, name: str) -> str:
        return f"{self._server.url.replace('//postgres@', f'//{name}@')}?options=-csearch_path%3D{name}"


_TABLES = """
select c.relname
from pg_class as c
where c.relnamespace = to_regnamespace(%s) and c.relkind = 'r' and c.relname not like '%%_schema'
"""
_LOOK = """
select 'class', c.relname, c.relkind::text || coalesce(array_to_string(c.reloptions, ','), '')
from pg_class as c
where c.relnamespace = to_regnamespace(%(name)s)
union all
select 'column', a.attrelid::text || a.attname, a.atttypid::text || a.attnotnull || a.attisdropped
from pg_attribute as a
inner join pg_class as c on c.oid = a.attrelid
where c.relnamespace = to_regnamespace(%(name)s) and a.attnum > 0
union all
select 'trigger', t.tgrelid::text || t.tgname, t.tgenabled::text
from pg_trigger as t
inner join pg_class as c on c.oid = t.tgrelid
where c.relnamespace = to_regnamespace(%(name)s)
union all
select 'function', p.proname, md5(p.prosrc)
from pg_proc as p
where p.pronamespace = to_regnamespace(%(name)s)
union all
select 'constraint', k.conname, k.contype::text || k.convalidated
from pg_constraint as k
where k.connamespace = to_regnamespace(%(name)s)
order by 1, 2, 3
"""
