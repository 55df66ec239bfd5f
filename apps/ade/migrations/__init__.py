"""Migrations: ade's tables and views in numbered versions, each applied once, whoever starts first.

`ade_schema` has a row for each version that was applied. Its primary key decides who applies one: a second process
that inserts the same number waits for the first, is refused, and looks again.
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
"""In order: the first one leads to version 1. One that was released is never changed."""


def migrate(connection: Connection, *, prefix: str, migrations: tuple[Apply, ...] = MIGRATIONS) -> None:
    """Bring the tables up to this version of the code; `prefix` is what the engine's tables begin with."""
    VERSIONS.create(connection, checkfirst=True)
    at = version(connection)
    if at > len(migrations):
        raise SchemaTooNew(
            f"ade's tables are at version {at}, this code knows up to {len(migrations)}: upgrade ade here"
        )
    for number, apply in enumerate(migrations, start=1):
        if number > at:
            connection.execute(insert(VERSIONS).values(version=number, applied_at=datetime.now(UTC)))
            apply(connection, prefix)


def version(connection: Connection) -> int:
    """The version of the tables; 0 where there are none."""
    return connection.scalar(select(func.max(VERSIONS.c.version))) or 0
