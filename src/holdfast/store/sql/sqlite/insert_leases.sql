-- Claim, second half: a run whose key someone else holds a lease on is left out.
insert into holdfast_leases (
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers,
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
    :holder,
    :now,
    value ->> 'expires_at',
    value ->> 'deadline_at'
from json_each(:rows)
where true
on conflict do nothing
returning run_id
