"""SQL views: `documents` and `document_processing_jobs`, for anyone who speaks SQL.

A document's job is a run, seen in the words of this application; a document that was read again has several, and the
newest says how it stands. `attempts` counts what failed: an attempt that is under way, or that went well, is none.
`error_log` is what each of them said, in their order. No retention removes these runs (`audit=True`), so a job is there
as long as its document.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import DDL, Connection, text
from sqlalchemy.schema import ExecutableDDLElement

from apps.extraction.circuit_breaker import SERVICES
from holdfast import InvalidSetting

# What an attempt has said that was not the last one; of a long error its end, which says most.
LOGS = {
    "sqlite": """
    (select group_concat(substr(line, -4000), char(10)) from (
        select e.id, case e.kind
            when 'RUN_RETRIED' then json_extract(e.data, '$.error')
            else 'its worker was lost: ' || json_extract(e.data, '$.because')
        end as line
        from %(prefix)sevent e
        where e.run_id = d.run_id
        and (e.kind = 'RUN_RETRIED' or e.kind = 'RUN_TAKEN_OVER' and json_extract(e.data, '$.decision') = 'retried')
        order by e.id
    ))""",
    "postgresql": """
    (select string_agg(right(line, 4000), chr(10) order by id) from (
        select e.id, case e.kind
            when 'RUN_RETRIED' then e.data::json ->> 'error'
            else 'its worker was lost: ' || (e.data::json ->> 'because')
        end as line
        from %(prefix)sevent e
        where e.run_id = d.run_id
        and (e.kind = 'RUN_RETRIED' or e.kind = 'RUN_TAKEN_OVER' and e.data::json ->> 'decision' = 'retried')
    ) told)""",
}
TOGETHER = {
    # An old client can't open a file at all whose views it can't parse: `concat_ws` came with SQLite 3.44.
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
    case when r.state in ('running', 'succeeded') then r.tries - 1 else r.tries end as attempts,
    r.started_at as started_at,
    r.finished_at as completed_at,
    r.failure_type as failure_type,
    {together} as error_log
from document_runs d
join %(prefix)srun r on r.id = d.run_id
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
join %(prefix)srun r on r.id = u.run_id
"""

WIDTH = "alter table document_chunks alter column embedding type vector(%(dimensions)d)"
# More neighbours than usual: of a clause that stands in many documents each is a neighbour of all the others, and a
# passage that stands alone must still be reached from somewhere.
INDEX = """
create index if not exists ix_document_chunks_embedding on document_chunks using hnsw (embedding vector_cosine_ops)
with (m = 32, ef_construction = 200)
"""
SERVICE = "insert into services (name, failures) values (:name, 0) on conflict do nothing"
MADE_BY = "select min(embedded_by) from uploads where embedded_by <> :model"
KEPT = {
    "sqlite": "select length(embedding) / 4 from document_chunks limit 1",
    "postgresql": """
    select nullif(atttypmod, -1) from pg_attribute
    where attrelid = 'document_chunks'::regclass and attname = 'embedding'""",
}


def complete(*, dimensions: int, model: str, prefix: str) -> Callable[[Connection], None]:
    """What the tables need besides: vectors of one model with an index, the services, and the views, made anew.

    `prefix` is what the engine's own tables begin with, with their schema if they have one.
    """

    def make(connection: Connection) -> None:
        dialect = connection.dialect.name
        kept = connection.scalar(text(KEPT[dialect]))
        if kept not in (None, dimensions):
            raise InvalidSetting(
                f"EXTRACTION_DIMENSIONS: the vectors kept here have {kept}; another model needs another database"
            )
        if (other := connection.scalar(text(MADE_BY), {"model": model})) is not None:
            raise InvalidSetting(
                f"EXTRACTION_EMBEDDINGS: the vectors kept here are of {other!r}; another model needs another database"
            )
        for name in SERVICES:
            connection.execute(text(SERVICE), {"name": name})
        if dialect == "postgresql":
            if kept is None:
                connection.execute(_ddl(WIDTH, dimensions=dimensions))
            connection.execute(text(INDEX))
        together = TOGETHER[dialect].replace("{log}", LOGS[dialect])
        for name, view in (
            ("document_processing_jobs", JOBS.replace("{together}", together)),
            ("documents", DOCUMENTS),
        ):
            connection.execute(_ddl("drop view if exists %(view)s", view=name))
            connection.execute(_ddl(view, prefix=prefix))

    return make


def _ddl(statement: str, **parts: object) -> ExecutableDDLElement:
    """A statement that takes no parameters; its parts are ours."""
    return DDL(statement, context=parts)  # type: ignore[no-untyped-call]
