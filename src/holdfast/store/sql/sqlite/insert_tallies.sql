-- Begin to count spans of time.
insert into holdfast_tallies (
    grain,
    job,
    queue,
    since_at,
    state,
    runs,
    waited,
    ran
)
select
    value ->> 'grain',
    value ->> 'job',
    value ->> 'queue',
    value ->> 'since_at',
    value ->> 'state',
    value ->> 'runs',
    value ->> 'waited',
    value ->> 'ran'
from json_each(:rows)
where true
