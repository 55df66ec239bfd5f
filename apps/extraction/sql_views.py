"""SQL views: `documents` and `document_processing_jobs`, for SQL clients and for this application.

A job is a run of the engine. A document that was processed again has several jobs; the newest decides its status.
`attempts` counts failed attempts only, and `error_log` has their errors in order. Retention never deletes these runs
(`keep_forever=True`), so a job exists as long as its document.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import DDL, Connection, text
from sqlalchemy.schema import ExecutableDDLElement

from apps.extraction.circuit_breaker import SERVICES
from holdfast import InvalidSetting

# The errors of all attempts but the last. A long error is cut at its start, because its end matters most.
EARLIER_ERRORS = {
    "sqlite": """
    (select group_concat(substr(line, -4000), char(10)) from (
        select e.id, case e.kind
            when 'RUN_RETRIED' then json_extract(e.data, '$.error')
            else 'the worker was lost: ' || json_extract(e.data, '$.reason')
        end as line
        from %(prefix)sevent_view e
        where e.run_id = d.run_id
        and (e.kind = 'RUN_RETRIED' or e.kind = 'RUN_TAKEN_OVER' and json_extract(e.data, '$.decision') = 'retried')
        order by e.id
    ))""",
    "postgresql": """
    (select string_agg(right(line, 4000), chr(10) order by id) from (
        select e.id, case e.kind
            when 'RUN_RETRIED' then e.data::json ->> 'error'
            else 'the worker was lost: ' || (e.data::json ->> 'reason')
        end as line
        from %(prefix)sevent_view e
        where e.run_id = d.run_id
        and (e.kind = 'RUN_RETRIED' or e.kind = 'RUN_TAKEN_OVER' and e.data::json ->> 'decision' = 'retried')
    ) errors)""",
}
ERROR_LOG = {
    # No `concat_ws`, which is new in SQLite 3.44: an older client can't open a file if it can't parse one of its views.
    "sqlite": "nullif(coalesce({log} || char(10) || substr(r.error, -4000), {log}, substr(r.error, -4000)), '')",
    "postgresql": "nullif(concat_ws(chr(10), {log}, right(r.error, 4000)), '')",
}

JOBS = """
create view document_processing_jobs as
select
    d.run_id as id,
    d.document_id as document_id,
    case
        when r.state = 'queued' then 'PENDING'
        when r.state = 'running' then 'PROCESSING'
        when r.state = 'succeeded' then 'COMPLETED'
        else 'FAILED'
    end as status,
    case when r.state in ('running', 'succeeded') then r.attempt - 1 else r.attempt end as attempts,
    r.started_at as started_at,
    r.finished_at as completed_at,
    r.failure_type as failure_type,
    {error_log} as error_log
from document_runs d
join %(prefix)srun_view r on r.id = d.run_id
"""

DOCUMENTS = """
create view documents as
select
    u.id, u.name, u.size, u.sha256, u.blob, u.created_at, u.created_by, u.pages,
    case
        when r.state in ('queued', 'running') then 'Processing'
        when r.state = 'succeeded' then 'Processed'
        else 'Failed'
    end as status,
    u.embedding, u.embedded_by
from uploads u
join %(prefix)srun_view r on r.id = u.run_id
"""

SET_DIMENSIONS = "alter table document_chunks alter column embedding type vector(%(dimensions)d)"
# More neighbours than the default: the copies of a clause that many documents share are neighbours of each other, and
# the search must still reach other passages.
INDEX = """
create index if not exists ix_document_chunks_embedding on document_chunks using hnsw (embedding vector_cosine_ops)
with (m = 32, ef_construction = 200)
"""
INSERT_SERVICE = "insert into services (name, failures) values (:name, 0) on conflict do nothing"
OTHER_MODEL = "select min(embedded_by) from uploads where embedded_by <> :model"
STORED_DIMENSIONS = {
    "sqlite": "select length(embedding) / 4 from document_chunks limit 1",
    "postgresql": """
    select nullif(atttypmod, -1) from pg_attribute
    where attrelid = 'document_chunks'::regclass and attname = 'embedding'""",
}


def complete(*, dimensions: int, model: str, prefix: str) -> Callable[[Connection], None]:
    """Return a function that completes the tables: vector index, rows of the services, and the views.

    `prefix` is the prefix of the engine's table and view names, with the schema if one is set.
    """

    def complete_tables(connection: Connection) -> None:
        dialect = connection.dialect.name
        stored = connection.scalar(text(STORED_DIMENSIONS[dialect]))
        if stored not in (None, dimensions):
            raise InvalidSetting(
                f"EXTRACTION_DIMENSIONS: the vectors in this database have {stored}; use another database"
            )
        if (other := connection.scalar(text(OTHER_MODEL), {"model": model})) is not None:
            raise InvalidSetting(
                f"EXTRACTION_EMBEDDINGS: the vectors in this database are from {other!r}; use another database"
            )
        for name in SERVICES:
            connection.execute(text(INSERT_SERVICE), {"name": name})
        if dialect == "postgresql":
            if stored is None:
                connection.execute(_ddl(SET_DIMENSIONS, dimensions=dimensions))
            connection.execute(text(INDEX))
        error_log = ERROR_LOG[dialect].replace("{log}", EARLIER_ERRORS[dialect])
        for name, view in (
            ("document_processing_jobs", JOBS.replace("{error_log}", error_log)),
            ("documents", DOCUMENTS),
        ):
            connection.execute(_ddl("drop view if exists %(view)s", view=name))
            connection.execute(_ddl(view, prefix=prefix))

    return complete_tables


def _ddl(statement: str, **parts: object) -> ExecutableDDLElement:
    """Make a DDL statement, which can't have parameters; `parts` must not come from users."""
    return DDL(statement, context=parts)  # type: ignore[no-untyped-call]
