-- Submit; a run that is there already (by id, by idempotency key, or as that child) is left out.
-- Where a queue is bounded and its seats were not counted, the database refuses.
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
    dependencies,
    key_limit,
    audit,
    trace,
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
    dependencies,
    key_limit,
    audit,
    trace,
    case
        when
            :counted = 0
            and exists (
                select 1
                from holdfast_queues as q
                where q.max_queued is not null and q.name in ('*', r.queue)
            ) then null
        else created_at
    end
from json_to_recordset(cast(:rows as json)) as r (id text, job text, queue text, priority integer, key text, args text, policy text, tags text, idempotency_key text, again_of text, kind text, parent_id text, stage text, segment text, needed text, dependencies text, key_limit integer, audit integer, trace text, created_at timestamptz)
order by id
on conflict do nothing
returning id
