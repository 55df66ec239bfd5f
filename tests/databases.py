"""Databases for tests, with all tables and no rows.

They are created once and reused, because creating the tables takes longer than most tests.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from tests.postgres import PostgresServer

from holdfast import Holdfast
from holdfast.store.dialects.postgres import PostgresDialect

# Server defaults that differ from those of our test server, for `--odd-postgres`.
ODD = {
    "default_transaction_isolation": "repeatable read",
    "datestyle": "SQL, DMY",
    "timezone": "Asia/Kathmandu",
    "intervalstyle": "sql_standard",
    "plan_cache_mode": "force_generic_plan",
    "bytea_output": "escape",
    "extra_float_digits": "0",
    "client_encoding": "LATIN1",
    "statement_timeout": "10s",
    "idle_in_transaction_session_timeout": "10s",
}

_numbers = itertools.count()

sqlite: Any = importlib.import_module(f"{os.environ.get('HOLDFAST_SQLITE_MODULE', 'sqlite3')}.dbapi2")
"""The SQLite library that the engine uses in these tests. A second one in the process would drop its locks."""


def odd_locale() -> str:
    """A locale with the sort order of a language; C if this host can't generate one."""
    can = shutil.which("localedef") is not None and Path("/usr/share/i18n/locales/en_US").exists()
    return "en_US.UTF-8" if can else "C"


def locked_by(pid: int) -> set[int]:
    """The inodes that a process holds POSIX locks on."""
    found = set()
    for file in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(OSError):
            if "lock:" in file.read_text():
                found.add(os.stat(f"/proc/{pid}/fd/{file.name}").st_ino)
    return found


def new_name() -> str:
    return f"test_{os.getpid()}_{next(_numbers)}"


class Template:
    """A SQLite file with all tables, to be copied."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "template.db"
        with Holdfast(f"sqlite:///{self._file}") as hf:
            hf.migrate()

    def copy(self, folder: Path) -> str:
        file = folder / f"{new_name()}.db"
        shutil.copyfile(self._file, file)
        return f"sqlite:///{file}"


class WarmConnections:
    """Connections of ended tests, kept open for the next test with the same schema.

    A new PostgreSQL process first loads the catalogs and plans each statement, which takes longer than most tests. A
    kept connection carries nothing else into the next test: the engine sets its options again whenever it connects.
    """

    MOST = 4  # per schema

    def __init__(self) -> None:
        self._idle: dict[str, list[Any]] = {}
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._open, self._close = PostgresDialect._open, PostgresDialect.close
        opened, closed = self._open, self._close

        def open_warm(dialect: PostgresDialect) -> Any:
            return self._take(dialect) or opened(dialect)

        def close_warm(dialect: PostgresDialect, connection: Any) -> None:
            if not self._keep(dialect, connection):
                closed(dialect, connection)

        self._patch(open_warm, close_warm)

    def lend(self, url: str) -> None:
        """Keep connections to this URL from now on."""
        if self.MOST == 0:
            self.forget(url)
        self._idle.setdefault(url, [])

    def pids(self, url: str) -> list[int]:
        return [connection.info.backend_pid for connection in self._idle[url]]

    def forget(self, url: str) -> None:
        """Close the connections to this URL, and keep none any more."""
        for connection in self._idle.pop(url, []):
            connection.close()

    def close(self) -> None:
        self._patch(self._open, self._close)
        for url in list(self._idle):
            self.forget(url)

    def _patch(self, opened: Any, closed: Any) -> None:
        PostgresDialect._open, PostgresDialect.close = opened, closed  # type: ignore[method-assign]

    def _take(self, dialect: PostgresDialect) -> Any:
        with self._lock:
            idle = self._idle.get(dialect.url, []) if os.getpid() == self._pid else []
            while idle:
                connection = idle.pop()
                if dialect.is_open(connection):
                    return connection
                connection.close()
        return None

    def _keep(self, dialect: PostgresDialect, connection: Any) -> bool:
        if os.getpid() != self._pid or dialect.url not in self._idle or len(self._idle[dialect.url]) >= self.MOST:
            return False
        dialect._leave_pipeline(connection)
        if connection.closed or connection.info.transaction_status != TransactionStatus.IDLE:
            return False
        try:
            connection.execute("reset all; unlisten *; select pg_advisory_unlock_all()")
        except psycopg.Error:
            return False
        with self._lock:
            self._idle[dialect.url].append(connection)
        return True


class Schemas:
    """Schemas on one PostgreSQL server, each with its own user, so that open connections show which test left them.

    A schema is reused if its test left no open connection and did not change the tables.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._free: list[str] = []
        self._looks: dict[str, object] = {}
        self._warm = WarmConnections()
        # One connection for all: a new one would first load the catalogs, which takes longer than our queries.
        self._connection = psycopg.connect(server.url, autocommit=True)
        self._connection.execute("set session_replication_role = replica")  # triggers must not prevent deletes

    def close(self) -> None:
        self._warm.close()
        self._connection.close()

    @contextlib.contextmanager
    def lend(self, *, empty: bool = False) -> Iterator[str]:
        """Yield the URL of a schema with the tables, or of an empty one."""
        name = self._free.pop() if self._free and not empty else self._make(empty=empty)
        if not empty:
            self._warm.lend(self._url(name))
        yield self._url(name)
        if not empty and self._is_left(name):
            self._free.append(name)
        else:
            self._warm.forget(self._url(name))

    def _make(self, *, empty: bool) -> str:
        name = new_name()
        make_role(self._connection, name)
        if not empty:
            with Holdfast(self._url(name)) as hf:
                hf.migrate()
            self._looks[name] = self._look(name)
        return name

    def _is_left(self, name: str) -> bool:
        """Empty the schema and return True if it can be lent again."""
        if self._is_connected(name) or self._look(name) != self._looks[name]:
            return False
        self._empty(name)
        return True

    def _is_connected(self, name: str) -> bool:
        """Whether its user is still connected. Waits a moment, because the server notices a closed connection late."""
        give_up_at = time.monotonic() + 0.2
        query = "select 1 from pg_stat_activity where usename = %s and pid <> all (%s)"
        while found := self._connection.execute(query, [name, self._warm.pids(self._url(name))]).fetchall():
            if time.monotonic() > give_up_at:
                break
            time.sleep(0.002)
        return bool(found)

    def _empty(self, name: str) -> None:
        """Empty all tables so that the next test finds them as new.

        Deleting a few rows is quicker. A table that has grown or been analysed is truncated.
        """
        tables = self._connection.execute(_TABLES, [name]).fetchall()
        with self._connection.pipeline():
            for table, is_as_new in tables:
                empty = sql.SQL("delete from {}" if is_as_new else "truncate {}")
                self._connection.execute(empty.format(sql.Identifier(name, table)))
            self._connection.execute(_RESTART, [name])

    def _look(self, name: str) -> object:
        """The version of the schema, and its tables, columns, triggers, functions and constraints."""
        query = sql.SQL("select version from {}.holdfast_schema").format(sql.Identifier(name))
        with contextlib.suppress(psycopg.Error):
            version = self._connection.execute(query).fetchall()
            return version, self._connection.execute(_LOOK, {"name": name}).fetchall()
        return None

    def _url(self, name: str) -> str:
        return self._server.url.replace("//postgres@", f"//{name}@")


def make_role(admin: psycopg.Connection[Any], name: str) -> None:
    """Create a role and a schema of the same name that it owns and finds first; it has no other rights."""
    admin.execute(sql.SQL("create role {} login").format(sql.Identifier(name)))
    admin.execute(sql.SQL("create schema {0} authorization {0}").format(sql.Identifier(name)))


_TABLES = """
select c.relname, c.reltuples < 0 and pg_relation_size(c.oid) <= 4 * 8192
from pg_class as c
where c.relnamespace = to_regnamespace(%s) and c.relkind = 'r' and c.relname not like '%%_schema'
"""
_RESTART = """
select setval(s.seqrelid::regclass, s.seqstart, false)
from pg_sequence as s
inner join pg_class as c on c.oid = s.seqrelid
where c.relnamespace = to_regnamespace(%s)
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
