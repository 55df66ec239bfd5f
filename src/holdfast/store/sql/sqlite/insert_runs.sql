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
    value ->> 'id',
    value ->> 'job',
    value ->> 'queue',
    value ->> 'priority',
    value ->> 'key',
    value ->> 'args',
    value ->> 'policy',
    value ->> 'tags',
    value ->> 'idempotency_key',
    value ->> 'again_of',
    value ->> 'created_at'
from json_each(:rows)
where true
on conflict do nothing
returning id
