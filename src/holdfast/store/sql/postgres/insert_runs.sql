-- Submit; a run that is there already (by id, by idempotency key, or as that child) is left out.
insert into holdfast_runs (
    id,
    job,
    queue,
    priority,
    key,
    args,
    policy,
    tags,
    idempotency_key,
    again_of,
    kind,
    parent_id,
    stage,
    segment,
    needed,
    audit,
    created_at
)
select
    id,
    job,
    queue,
    priority,
    key,
    args,
    policy,
    tags,
    idempotency_key,
    again_of,
    kind,
    parent_id,
    stage,
    segment,
    needed,
    audit,
    created_at
from json_to_recordset(cast(:rows as json)) as r (id text, job text, queue text, priority integer, key text, args text, policy text, tags text, idempotency_key text, again_of text, kind text, parent_id text, stage text, segment text, needed text, audit integer, created_at timestamptz)
order by id
on conflict do nothing
returning id
