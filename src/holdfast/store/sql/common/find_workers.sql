-- Who is alive.
select
    id,
    host,
    pid,
    version,
    queues,
    jobs,
    concurrency,
    exclusive,
    started_at,
    seen_at,
    expires_at,
    stopping,
    drain_at
from holdfast_workers
where expires_at > :now
order by
    started_at,
    id
