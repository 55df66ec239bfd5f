-- Who holds an exclusive name.
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
where exclusive = :exclusive
