-- What is said of queues.
select
    name,
    paused_at,
    note,
    max_queued,
    concurrency
from holdfast_queues
order by name
limit :limit
