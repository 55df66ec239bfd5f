-- Claim, second half: a run whose key, or whose place in its queue, someone else has is left out.
insert into holdfast_leases (
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers,
    key_limit,
    number,
    place,
    holder,
    started_at,
    expires_at,
    deadline_at
)
select
    value ->> 'run_id',
    value ->> 'job',
    value ->> 'queue',
    value ->> 'rank',
    value ->> 'key',
    value ->> 'attempt',
    value ->> 'tries',
    value ->> 'takeovers',
    value ->> 'key_limit',
    value ->> 'number',
    value ->> 'place',
    :holder,
    :now,
    value ->> 'expires_at',
    value ->> 'deadline_at'
from json_each(:rows)
where true
on conflict do nothing
returning run_id
