-- Submit; a run that is there already (by id, or by idempotency key) is left out.
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
    created_at
from json_to_recordset(cast(:rows as json)) as r (id text, job text, queue text, priority integer, key text, args text, policy text, tags text, idempotency_key text, again_of text, created_at timestamptz)
order by id
on conflict do nothing
returning id
