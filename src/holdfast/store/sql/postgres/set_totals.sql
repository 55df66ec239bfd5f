-- Go on counting jobs and queues.
update holdfast_totals as t
set
    runs = r.runs,
    waited = r.waited,
    ran = r.ran
from json_to_recordset(cast(:rows as json)) as r (job text, queue text, state text, runs bigint, waited text, ran text)
where
    t.job = r.job
    and t.queue = r.queue
    and t.state = r.state
