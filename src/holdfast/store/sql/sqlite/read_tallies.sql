-- What was counted of these jobs and queues between two instants, the newest first.
select
    t.job,
    t.queue,
    t.since_at,
    t.state,
    t.runs,
    t.waited,
    t.ran
from json_each(:rows) as r
cross join holdfast_tallies as t
    on
        t.grain = :grain
        and t.job = r.value ->> 'job'
        and t.queue = r.value ->> 'queue'
        and t.since_at >= :since
        and t.since_at < :before
order by t.since_at desc
limit :limit
