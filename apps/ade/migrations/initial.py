"""Version 1: the first tables, and the views that show runs and builds with their states.

The tables repeat those in `apps.ade.tables`, so that a later change there does not change this migration.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Unicode,
    UnicodeText,
    UniqueConstraint,
    text,
)

from apps.shared.database import Instant

ID, DIGEST = String(40), String(64)
metadata = MetaData()

Table(
    "ade_workspaces",
    metadata,
    Column("id", ID, primary_key=True),
    Column("name", Unicode(200), unique=True, nullable=False),
    Column("created_at", Instant, nullable=False),
)
Table(
    "ade_contents",
    metadata,
    Column("sha256", DIGEST, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("piece", LargeBinary, nullable=False),
)
Table(
    "ade_documents",
    metadata,
    Column("id", ID, primary_key=True),
    Column("workspace_id", ForeignKey("ade_workspaces.id"), index=True, nullable=False),
    Column("name", Unicode(255), nullable=False),
    Column("media_type", String(100), nullable=False),
    Column("size", Integer, nullable=False),
    Column("sha256", DIGEST, nullable=False),
    Column("created_at", Instant, nullable=False),
)
Table(
    "ade_configurations",
    metadata,
    Column("id", ID, primary_key=True),
    Column("workspace_id", ForeignKey("ade_workspaces.id"), index=True, nullable=False),
    Column("name", Unicode(200), nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("workspace_id", "name"),
)
Table(
    "ade_versions",
    metadata,
    Column("configuration_id", ForeignKey("ade_configurations.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("digest", DIGEST, nullable=False),
    Column("files", UnicodeText, nullable=False),
    Column("created_at", Instant, nullable=False),
)
Table(
    "ade_build_rows",
    metadata,
    Column("id", ID, primary_key=True),
    Column("configuration_id", ForeignKey("ade_configurations.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("fingerprint", DIGEST, nullable=False),
    Column("created_at", Instant, nullable=False),
    UniqueConstraint("configuration_id", "fingerprint"),
)
Table(
    "ade_run_rows",
    metadata,
    Column("id", ID, primary_key=True),
    Column("workspace_id", ForeignKey("ade_workspaces.id"), nullable=False),
    Column("configuration_id", ForeignKey("ade_configurations.id"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("input_document_id", ForeignKey("ade_documents.id"), nullable=False),
    Column("build_id", ForeignKey("ade_build_rows.id"), index=True, nullable=False),
    Column("created_at", Instant, nullable=False),
    Index("ix_ade_run_rows_configuration", "configuration_id", "id"),
)

RUNS = """
create view ade_runs as
select
    r.id,
    r.workspace_id,
    r.configuration_id,
    r.version as configuration_version,
    r.input_document_id,
    r.build_id,
    case when e.state = 'timed_out' then 'failed' else e.state end as status,
    e.error as message,
    e.created_at,
    e.started_at,
    e.finished_at
from ade_run_rows as r
inner join {engine}run_view as e on e.id = r.id{exactly}
"""
BUILDS = """
create view ade_builds as
select
    b.id,
    b.configuration_id,
    b.version as configuration_version,
    b.fingerprint,
    case
        when m.stale_at is not null and m.reason like 'lost: %' then 'failed'
        when e.state = 'running' then 'building'
        when e.state = 'succeeded' then 'ready'
        when e.state = 'timed_out' then 'failed'
        else coalesce(e.state, 'queued')
    end as status,
    coalesce(case when m.stale_at is not null then m.reason end, m.error) as message,
    b.created_at,
    m.started_at,
    m.finished_at
from ade_build_rows as b
left join {engine}build_view as m
    on
        m.job = 'ade.environment'
        and m.scope = b.configuration_id{exactly}
        and m.fingerprint = b.fingerprint{exactly}
left join {engine}run_view as e on e.id = m.run_id
"""


def apply(connection: Connection, prefix: str) -> None:
    """Create the tables and the views."""
    metadata.create_all(connection, checkfirst=False)
    # Holdfast's text columns have a binary collation; SQL Server compares them with others only with an explicit one.
    exactly = " collate latin1_general_100_bin2" if connection.dialect.name == "mssql" else ""
    for view in (RUNS, BUILDS):
        connection.execute(text(view.format(engine=prefix, exactly=exactly)))
