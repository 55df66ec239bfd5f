-- Let runs be claimed.
insert into holdfast_ready (
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
    reserved
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
    value ->> 'reserved'
from json_each(:rows)
where true
