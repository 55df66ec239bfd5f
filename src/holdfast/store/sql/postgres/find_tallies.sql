-- What has been counted of these spans of time.
select
    t.grain,
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_to_recordset(cast(:rows as json)) as r (grain integer, job text, queue text, since_at timestamptz, state text)
-- The limit lets the planner do nothing but look up each.
cross join lateral (
    select *
    from holdfast_tallies as f
    where f.grain = r.grain and f.job = r.job and f.queue = r.queue and f.since_at = r.since_at and f.state = r.state
    limit 1
) as t
