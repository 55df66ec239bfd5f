-- Every queue that has a run or something said about it.
with here as (
    select queue, 'waits' as place, run_id from holdfast_waits
    union all
    select queue, 'ready' as place, run_id from holdfast_ready
    union all
    select queue, 'leases' as place, run_id from holdfast_leases
),

counted as (
    select
        queue as name,
        count(case when place <> 'leases' then 1 end) as queued,
        count(case when place = 'ready' then 1 end) as ready,
        count(case when place = 'leases' then 1 end) as running,
        min(case when place <> 'leases' then run_id end) as oldest
    from here
    group by queue
)

select
    n.name,
    q.paused_at,
    q.note,
    q.max_queued,
    q.concurrency,
    coalesce(c.queued, 0) as queued,
    coalesce(c.ready, 0) as ready,
    coalesce(c.running, 0) as running,
    r.created_at as oldest_at
from (
    select name
    from holdfast_queues
    where paused_at is not null or max_queued is not null or concurrency is not null
    union
    select name from counted
) as n
left join holdfast_queues as q on q.name = n.name
left join counted as c on c.name = n.name
left join holdfast_runs as r on r.id = c.oldest
order by n.name
