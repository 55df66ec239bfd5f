-- Begin to count jobs and queues.
insert into holdfast_totals (
    job,
    queue,
    state,
    runs,
    waited,
    ran
)
select
    value ->> 'job',
    value ->> 'queue',
    value ->> 'state',
    value ->> 'runs',
    value ->> 'waited',
    value ->> 'ran'
from json_each(:rows)
where true
