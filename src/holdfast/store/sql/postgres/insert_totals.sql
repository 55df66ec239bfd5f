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
    job,
    queue,
    state,
    runs,
    waited,
    ran
from json_to_recordset(cast(:rows as json)) as r (job text, queue text, state text, runs bigint, waited text, ran text)
