-- What is said of queues.
select top (:limit)
    name,
    paused_at,
    note,
    max_queued,
    concurrency
from holdfast_queues
order by name
