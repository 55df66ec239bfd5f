-- What was counted of these jobs and queues between two instants, the newest first.
select
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_to_recordset(cast(:rows as json)) as r (job text, queue text)
-- The limit lets the planner do nothing but go by the key of each.
cross join lateral (
    select *
    from holdfast_tallies as f
    where
        f.grain = :grain
        and f.job = r.job
        and f.queue = r.queue
        and f.since_at >= :since
        and f.since_at < :before
    order by f.since_at desc
    limit :limit
) as t
order by t.since_at desc
limit :limit
