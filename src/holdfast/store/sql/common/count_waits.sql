-- Of the oldest that wait, as many as asked for: how many are in each queue.
select
    w.queue,
    count(*) as runs,
    min(w.run_id) as oldest
from (
    select
        queue,
        run_id
    from holdfast_waits
    order by run_id
    limit :limit
) as w
group by w.queue
