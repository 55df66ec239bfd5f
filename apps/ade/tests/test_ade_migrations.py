"""Migrations of ade: each is applied once, in order; together they create the tables that the code expects."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from apps.ade import migrations
from apps.ade.tables import Base, Build, Configuration, Document, Run, Workspace
from apps.ade.tests.ade_service import stores
from apps.shared.database import Database
from sqlalchemy import Connection, Engine, MetaData, create_engine, inspect, text, update
from sqlalchemy.exc import IntegrityError

from holdfast import Holdfast, SchemaTooNew

PREFIX = "holdfast_"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    created = create_engine(f"sqlite:///{tmp_path}/tables.db")
    yield created
    created.dispose()


def described(connection: Connection) -> dict[str, Any]:
    """Return the columns, keys and indexes of every table."""
    inspector = inspect(connection)
    return {
        table: {
            "columns": [{**column, "type": str(column["type"])} for column in inspector.get_columns(table)],
            "key": inspector.get_pk_constraint(table)["constrained_columns"],
            "unique": sorted(each["column_names"] for each in inspector.get_unique_constraints(table)),
            "refers": sorted(
                (each["constrained_columns"], each["referred_table"]) for each in inspector.get_foreign_keys(table)
            ),
            "indexes": sorted((str(each["name"]), each["column_names"]) for each in inspector.get_indexes(table)),
        }
        for table in inspector.get_table_names()
        if table != migrations.VERSIONS.name
    }


def test_the_migrations_create_the_tables_that_the_code_expects(engine: Engine, tmp_path: Path) -> None:
    with engine.begin() as connection:
        migrations.migrate(connection, prefix=PREFIX)
        migrated = described(connection)
        assert sorted(inspect(connection).get_view_names()) == ["ade_builds", "ade_runs"]
    other = create_engine(f"sqlite:///{tmp_path}/models.db")
    with other.begin() as connection:
        Base.metadata.create_all(connection)
        assert described(connection) == migrated
    other.dispose()


def test_a_new_migration_is_applied_once_to_existing_tables(engine: Engine) -> None:
    def second(connection: Connection, prefix: str) -> None:
        connection.execute(text("alter table ade_workspaces add column note text"))

    with engine.begin() as connection:
        migrations.migrate(connection, prefix=PREFIX)
        connection.execute(text("insert into ade_workspaces values ('w', 'kept', '2026-01-01 00:00:00.000000')"))
    for _ in range(2):
        with engine.begin() as connection:
            migrations.migrate(connection, prefix=PREFIX, migrations=(*migrations.MIGRATIONS, second))
            assert migrations.version(connection) == 2
            assert connection.execute(text("select name, note from ade_workspaces")).one() == ("kept", None)
    with (
        engine.begin() as connection,
        pytest.raises(SchemaTooNew, match="at version 2, but this code knows only versions up to 1"),
    ):
        migrations.migrate(connection, prefix=PREFIX)


@pytest.mark.parametrize("own_url", stores(long="none"), indirect=True)
def test_several_processes_can_migrate_at_once(own_url: str) -> None:
    applied: list[int] = []

    def counted(connection: Connection, prefix: str) -> None:
        migrations.initial.apply(connection, prefix)
        applied.append(1)

    def migrate(connection: Connection) -> None:
        migrations.migrate(connection, prefix=PREFIX, migrations=(counted,))

    with Holdfast(own_url) as hf, ThreadPoolExecutor(4) as pool:
        hf.start()
        databases = [
            Database(own_url, MetaData(), prepare=hf.start, complete=migrate, sql_server=True) for _ in range(4)
        ]

        def open_(database: Database) -> int:
            with database.read() as session:
                return migrations.version(session.connection())

        assert list(pool.map(open_, databases)) == [1, 1, 1, 1]
        for database in databases:
            database.close()
    assert applied


@pytest.fixture
def filled(own_url: str) -> Iterator[Database]:
    """ade's own tables, with one run."""
    with Holdfast(own_url) as hf:
        complete = lambda connection: migrations.migrate(connection, prefix=PREFIX)  # noqa: E731
        database = Database(own_url, MetaData(), prepare=hf.start, complete=complete, sql_server=True)
        now = datetime.now(UTC)
        rows = (
            Workspace(id="w", name="w", created_at=now),
            Document(id="d", workspace_id="w", name="d", media_type="d", size=1, sha256="d", created_at=now),
            Configuration(id="c", workspace_id="w", name="c", version=1, created_at=now),
            Build(id="b", configuration_id="c", version=1, fingerprint="f", created_at=now),
            Run(
                id="r",
                workspace_id="w",
                configuration_id="c",
                version=1,
                input_document_id="d",
                build_id="b",
                created_at=now,
            ),
        )
        with database.write() as session:
            for row in rows:
                session.add(row)
                session.flush()
        yield database
        database.close()


@pytest.mark.contract("Q1")
@pytest.mark.parametrize("own_url", stores(long="none"), indirect=True)
@pytest.mark.parametrize("column", ["workspace_id", "configuration_id", "input_document_id", "build_id"])
def test_a_run_must_refer_to_an_existing_document_configuration_build_and_workspace(
    filled: Database, column: str
) -> None:
    for other in (None, "nothing"):
        with pytest.raises(IntegrityError), filled.write() as session:
            session.execute(update(Run).values({column: other}))


@pytest.mark.contract("Q3")
@pytest.mark.parametrize("own_url", stores(long="none"), indirect=True)
def test_a_configuration_has_one_build_for_each_fingerprint(filled: Database) -> None:
    def add(build_id: str, fingerprint: str) -> None:
        with filled.write() as session:
            session.add(
                Build(
                    id=build_id,
                    configuration_id="c",
                    version=2,
                    fingerprint=fingerprint,
                    created_at=datetime.now(UTC),
                )
            )

    add("other", "g")
    with pytest.raises(IntegrityError):
        add("again", "f")
