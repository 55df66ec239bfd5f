"""Migrations: ade's tables and views in numbered versions, each applied once, even if several processes start at once.

`ade_schema` has a row for each applied version. Its primary key decides which process applies a version: a second
process that inserts the same number waits for the first, is refused, and reads the version again.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import Column, Connection, Integer, MetaData, Table, func, insert, select

from apps.ade.migrations import initial
from apps.shared.database import Instant
from holdfast import SchemaTooNew

Apply = Callable[[Connection, str], None]

VERSIONS = Table(
    "ade_schema",
    MetaData(),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("applied_at", Instant, nullable=False),
)
MIGRATIONS: tuple[Apply, ...] = (initial.apply,)
"""All migrations in order; the first leads to version 1. Never change a released migration."""


def migrate(connection: Connection, *, prefix: str, migrations: tuple[Apply, ...] = MIGRATIONS) -> None:
    """Apply the migrations that the database does not have yet; `prefix` is the prefix of Holdfast's tables."""
    VERSIONS.create(connection, checkfirst=True)
    current = version(connection)
    if current > len(migrations):
        raise SchemaTooNew(
            f"ade's tables are at version {current}, but this code knows only versions up to {len(migrations)}; "
            "upgrade ade on this host"
        )
    for number, apply in enumerate(migrations, start=1):
        if number > current:
            connection.execute(insert(VERSIONS).values(version=number, applied_at=datetime.now(UTC)))
            apply(connection, prefix)


def version(connection: Connection) -> int:
    """Return the version of the tables; 0 if there are none."""
    return connection.scalar(select(func.max(VERSIONS.c.version))) or 0
