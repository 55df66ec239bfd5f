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
    value ->> 'kind',
    value ->> 'parent_id',
    value ->> 'stage',
    value ->> 'segment',
    value ->> 'needed',
    value ->> 'dependencies',
    value ->> 'key_limit',
    value ->> 'audit',
    value ->> 'trace',
    case
        when
            :counted = 0
            and exists (
                select 1
                from holdfast_queues as q
                where q.max_queued is not null and q.name in ('*', value ->> 'queue')
            ) then null
        else value ->> 'created_at'
    end
from json_each(:rows)
where true
on conflict do nothing
returning id
