-- A queue that has limits or is paused.
select
    name,
    paused_at,
    note,
    max_queued,
    concurrency,
    declared
from holdfast_queues
where name = :name
