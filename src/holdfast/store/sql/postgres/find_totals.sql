-- What has been counted of these jobs and queues.
select
    t.job,
    t.queue,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_to_recordset(cast(:rows as json)) as r (job text, queue text, state text)
-- The limit lets the planner do nothing but look up each.
cross join lateral (
    select *
    from holdfast_totals as f
    where f.job = r.job and f.queue = r.queue and f.state = r.state
    limit 1
) as t
