-- Remember finished steps.
insert into holdfast_steps (
    run_id,
    name,
    result,
    attempt,
    tries,
    started_at,
    finished_at,
    number
)
select
    value ->> 'run_id',
    value ->> 'name',
    value ->> 'result',
    value ->> 'attempt',
    value ->> 'tries',
    value ->> 'started_at',
    value ->> 'finished_at',
    value ->> 'number'
from json_each(:rows)
where true
