"""Views: `documents` and `document_processing_jobs`, for anyone who speaks SQL.

A document's job is its run, seen in the words of this application. `attempts` counts what failed: an attempt that is
under way, or that went well, is none. `error_log` is what every one of them said.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import DDL, Connection, text
from sqlalchemy.schema import ExecutableDDLElement

from holdfast import InvalidSetting

LOGS = {
    "sqlite": """
    (select group_concat(line, char(10)) from (
        select coalesce(json_extract(e.data, '$.error'), json_extract(e.data, '$.because')) as line
        from holdfast_events e
        where e.run_id = u.run_id and e.kind in ('RUN_RETRIED', 'RUN_TAKEN_OVER')
        union all select r.error where r.error is not null
    ))""",
    "postgresql": """
    (select string_agg(line, chr(10)) from (
        select coalesce(e.data::json ->> 'error', e.data::json ->> 'because') as line
        from holdfast_events e
        where e.run_id = u.run_id and e.kind in ('RUN_RETRIED', 'RUN_TAKEN_OVER')
        union all select r.error where r.error is not null
    ) told)""",
}


_JOBS = """
create view document_processing_jobs as
select
    u.run_id as id,
    u.id as document_id,
    case r.state
        when 'queued' then 'PENDING'
        when 'running' then 'PROCESSING'
        when 'succeeded' then 'COMPLETED'
        else 'FAILED'
    end as status,
    case when r.state in ('running', 'succeeded') then r.tries - 1 else r.tries end as attempts,
    r.started_at as started_at,
    r.finished_at as completed_at,
    {log} as error_log
from uploads u
join holdfast_run r on r.id = u.run_id
"""

JOBS = {dialect: _JOBS.replace("{log}", log) for dialect, log in LOGS.items()}

DOCUMENTS = """
create view documents as
select
    u.id, u.name, u.size, u.sha256, u.blob, u.created_at, u.created_by, u.pages,
    case r.state
        when 'succeeded' then 'Processed'
        when 'queued' then 'Processing'
        when 'running' then 'Processing'
        else 'Failed'
    end as status,
    u.embedding
from uploads u
join holdfast_run r on r.id = u.run_id
"""

WIDTH = "alter table document_chunks alter column embedding type vector(%(dimensions)d)"
INDEX = """
create index if not exists ix_document_chunks_embedding on document_chunks using hnsw (embedding vector_cosine_ops)
"""
KEPT = {
    "sqlite": "select length(embedding) / 4 from document_chunks limit 1",
    "postgresql": """
    select nullif(atttypmod, -1) from pg_attribute
    where attrelid = 'document_chunks'::regclass and attname = 'embedding'""",
}


def complete(dimensions: int) -> Callable[[Connection], None]:
    """What the tables need besides: vectors of so many dimensions with an index, and the views, made anew."""

    def make(connection: Connection) -> None:
        dialect = connection.dialect.name
        kept = connection.scalar(text(KEPT[dialect]))
        if kept not in (None, dimensions):
            raise InvalidSetting(
                f"EXTRACTION_DIMENSIONS: the vectors kept here have {kept}; another model needs another database"
            )
        for view in ("document_processing_jobs", "documents"):
            connection.execute(_ddl("drop view if exists %(view)s", view=view))
        if dialect == "postgresql":
            if kept is None:
                connection.execute(_ddl(WIDTH, dimensions=dimensions))
            connection.execute(text(INDEX))
        connection.execute(text(JOBS[dialect]))
        connection.execute(text(DOCUMENTS))

    return make


def _ddl(statement: str, **parts: object) -> ExecutableDDLElement:
    """A statement that takes no parameters; its parts are ours."""
    return DDL(statement, context=parts)  # type: ignore[no-untyped-call]
