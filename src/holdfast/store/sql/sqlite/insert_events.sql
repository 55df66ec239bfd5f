-- Record what happened.
insert into holdfast_events (
    run_id,
    kind,
    attempt,
    data,
    happened_at
)
select
    value ->> 'run_id',
    value ->> 'kind',
    value ->> 'attempt',
    value ->> 'data',
    value ->> 'happened_at'
from json_each(:rows)
where true
