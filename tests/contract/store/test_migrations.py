"""Migrations: the tables are created once, next to the tables of the user."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from tests.listing import runs_of
from tests.postgres import PostgresServer

from holdfast import Holdfast, InvalidSetting, SchemaMissing, SchemaTooNew
from holdfast.store import migrate
from holdfast.testing import FakeClock, Manual

if TYPE_CHECKING:
    from tests.fixtures import Database

PROCESSES = 20


def fork(work: Callable[[], int]) -> int:
    """Fork a child process that exits with the number that `work` returns; return its pid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child uses no thread of its parent
        pid = os.fork()
    if pid == 0:
        status = 99
        try:
            signal.alarm(50)
            status = work()
        finally:
            os._exit(status)
    return pid


@pytest.mark.contract("S3")
@pytest.mark.empty
def test_twenty_processes_starting_at_once_migrate_once(url: str, database: Database) -> None:
    gate, go = os.pipe()

    def start() -> int:
        os.close(go)
        os.read(gate, 1)  # returns when the parent closes its end: all begin at once
        hf = Holdfast(url, busy_timeout=40)

        @hf.job(name="work")
        def work() -> None: ...

        applied = hf.migrate()
        work.submit()
        return applied

    children = [fork(start) for _ in range(PROCESSES)]
    os.close(gate)
    os.close(go)
    applied = sorted(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children)

    assert applied[:-1] == [0] * (PROCESSES - 1)
    assert 1 <= applied[-1] < 99
    assert database.count("runs") == PROCESSES
    assert database.count("schema") == 1


@pytest.mark.contract("S3")
def test_migrating_again_changes_nothing(hf: Holdfast, database: Database) -> None:
    @hf.job(name="work")
    def work() -> None: ...

    run = work.submit()
    before = hf.snapshot(run.id)

    assert hf.migrate() == 0
    assert hf.snapshot(run.id) == before


@pytest.mark.contract("S3")
@pytest.mark.empty
def test_a_later_migration_is_applied_to_tables_in_use(url: str, database: Database, monkeypatch: Any) -> None:
    real = migrate.migrations

    def later(*about: str) -> dict[int, list[str]]:
        return real(*about) | {2: ["create table holdfast_later (id integer not null primary key)"]}

    with Holdfast(url) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        run = work.submit()
        before = hf.snapshot(run.id)

    monkeypatch.setattr(migrate, "migrations", later)
    with Holdfast(url, auto_migrate=False) as hf, pytest.raises(SchemaMissing, match="1, but this code needs 2"):
        hf.start()
    with Holdfast(url, auto_migrate=False) as hf:
        assert len(hf.migration_sql()) == 2, "the SQL must create the table and set the version"
        assert hf.migrate() == 1
        assert migrate.version(hf._store) == 2
        assert hf.snapshot(run.id) == before
        assert hf.verify() == []
    assert database.count("later") == 0


@pytest.mark.contract("S4")
@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.empty
def test_tables_of_a_newer_version_are_refused(url: str, database: Database, allowed: bool) -> None:
    with Holdfast(url) as hf:
        hf.start()
    database.run("update holdfast_schema set version = 999")

    with Holdfast(url, auto_migrate=allowed) as older:

        @older.job(name="work")
        def work() -> None: ...

        with pytest.raises(SchemaTooNew, match=r"999.*upgrade") as caught:
            work.submit()
        assert caught.value.code == "schema_too_new"
    assert database.count("runs") == 0


@pytest.mark.contract("S4")
@pytest.mark.empty
def test_without_auto_migrate_missing_tables_are_an_error_with_advice(url: str) -> None:
    with Holdfast(url, auto_migrate=False) as hf:

        @hf.job(name="work")
        def work() -> None: ...

        with pytest.raises(SchemaMissing, match="holdfast migrate") as caught:
            work.submit()
        assert caught.value.code == "schema_missing"
        assert hf.migrate() >= 1
        work.submit()


@pytest.mark.contract("S3")
@pytest.mark.empty
def test_two_table_prefixes_work_next_to_the_users_own_tables(url: str, database: Database) -> None:
    database.run("create table runs (id integer)")
    engines = [Holdfast(url, clock=FakeClock(), table_prefix=prefix) for prefix in ("one_", "holdfast_two_")]
    for hf in engines:

        @hf.job(name="work", key="name", max_attempts=2)
        def work(name: str) -> str:
            return name

        run = work.submit(hf.settings.table_prefix)
        work.submit(hf.settings.table_prefix)
        assert Manual(hf).run_all() == 2
        assert run.result(timeout=1) == hf.settings.table_prefix
        assert hf.verify() == []
        assert len(runs_of(hf)) == 2
        hf.close()
    assert database.all("select count(*) from one_runs") == [(2,)]
    assert database.all("select count(*) from runs") == [(0,)]


@pytest.mark.contract("S3")
def test_the_tables_may_be_in_a_schema(postgres: PostgresServer, postgres_url: str) -> None:
    with psycopg.connect(postgres.url_of(postgres_url.rpartition("/")[2])) as admin:
        role = postgres_url.rpartition("/")[2]
        admin.execute(f"grant create on database {role} to {role}")
    with Holdfast(postgres_url, schema_name="background", table_prefix="work_", clock=FakeClock()) as hf:

        @hf.job(name="work", key="name")
        def work(name: str) -> str:
            return name

        run = work.submit("a")
        work.submit("a")
        assert Manual(hf).run_all() == 2
        assert run.result(timeout=1) == "a"
        assert hf.verify() == []
    with psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            "select distinct schemaname from pg_tables where schemaname not in ('pg_catalog', 'information_schema')"
        ).fetchall()
    assert found == [("background",)]


@pytest.mark.contract("S4")
@pytest.mark.empty
@pytest.mark.parametrize("url", ["postgres"], indirect=True)
def test_a_role_that_may_not_create_tables_gets_a_clear_error(url: str, postgres: PostgresServer) -> None:
    role = url.partition("//")[2].partition("@")[0]
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(f"alter role {role} set search_path = public")
    with Holdfast(url) as hf, pytest.raises(SchemaMissing, match="permission denied for schema public") as caught:
        hf.start()
    assert "holdfast migrate" in str(caught.value)
    with Holdfast(url, schema_name="elsewhere") as hf, pytest.raises(SchemaMissing, match="elsewhere"):
        hf.start()


@pytest.mark.contract("S4")
def test_a_schema_is_refused_on_sqlite(sqlite_url: str) -> None:
    with pytest.raises(InvalidSetting, match="no schemas"):
        Holdfast(sqlite_url, schema_name="x")


@pytest.mark.contract("S3")
@pytest.mark.empty
def test_a_failed_migration_leaves_nothing_behind(url: str, database: Database, monkeypatch: Any) -> None:
    real = migrate.migrations

    def broken(*args: Any, **kwargs: Any) -> dict[int, list[str]]:
        return {number: [*statements, "create nonsense"] for number, statements in real(*args, **kwargs).items()}

    with Holdfast(url) as hf:
        with monkeypatch.context() as patched:
            patched.setattr(migrate, "migrations", broken)
            with pytest.raises(Exception, match="nonsense"):
                hf.migrate()
            assert migrate.version(hf._store) == 0
        assert hf.migrate() >= 1
        assert hf.verify() == []
