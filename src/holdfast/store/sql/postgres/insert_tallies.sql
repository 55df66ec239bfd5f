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
    grain,
    job,
    queue,
    since_at,
    state,
    runs,
    waited,
    ran
from json_to_recordset(cast(:rows as json)) as r (grain integer, job text, queue text, since_at timestamptz, state text, runs bigint, waited text, ran text)
