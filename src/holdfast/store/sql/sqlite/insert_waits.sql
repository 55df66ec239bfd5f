-- Let runs wait.
insert into holdfast_waits (
    run_id,
    job,
    queue,
    rank,
    key,
    attempt,
    tries,
    takeovers,
    key_limit,
    spare,
    errand,
    reserved,
    missing,
    due_at,
    because,
    look,
    since_at
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
    value ->> 'spare',
    value ->> 'errand',
    value ->> 'reserved',
    value ->> 'missing',
    value ->> 'due_at',
    value ->> 'because',
    value ->> 'look',
    value ->> 'since_at'
from json_each(:rows)
where true
