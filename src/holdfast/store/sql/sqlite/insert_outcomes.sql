-- End runs.
insert into holdfast_outcomes (
    run_id,
    state,
    failure_type,
    error,
    result,
    attempt,
    tries,
    takeovers,
    holder,
    started_at,
    finished_at,
    seal
)
select
    value ->> 'run_id',
    value ->> 'state',
    value ->> 'failure_type',
    value ->> 'error',
    value ->> 'result',
    value ->> 'attempt',
    value ->> 'tries',
    value ->> 'takeovers',
    value ->> 'holder',
    value ->> 'started_at',
    :now,
    value ->> 'seal'
from json_each(:rows)
where true
