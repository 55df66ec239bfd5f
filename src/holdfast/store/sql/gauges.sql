-- Gauges: how many runs are ready, running and waiting, sampled once a minute; and the counters.

-- name: insert_gauge
-- Insert the gauges of this minute, unless another process has inserted them.
insert into holdfast_gauges (minute_at, waiting, running, oldest)
values (:minute_at, :waiting, :running, :oldest)
on conflict do nothing

-- name: insert_gauge (sqlserver)
insert into holdfast_gauges (minute_at, waiting, running, oldest)
select
    cast(:minute_at as datetime2(6)),
    cast(:waiting as bigint),
    cast(:running as bigint),
    cast(:oldest as bigint)
where not exists (select 1 from holdfast_gauges where minute_at = :minute_at)

-- name: find_gauges
-- Read the newest gauges since a given time.
select
    minute_at,
    waiting,
    running,
    oldest
from holdfast_gauges
where minute_at >= :since
order by minute_at desc
limit :limit

-- name: delete_old_gauges
-- Delete old gauges.
delete from holdfast_gauges
where minute_at < :before

-- name: count_ready
-- Count the ready runs of each queue, up to a limit, and find the oldest. The index leads from each queue to the
-- next one.
with recursive named (name) as (
    select min(queue) from holdfast_ready
    union all
    select (select min(y.queue) from holdfast_ready as y where y.queue > n.name)
    from named as n
    where n.name is not null
),

few as (
    select name
    from named
    where name is not null
    limit :queues
)

-- Use `between`: with `=`, other indexes would provide this order, too, and the planner could choose a slower one.
select
    f.name as queue,
    (
        select count(*)
        from (
            select 1 as one
            from holdfast_ready as y
            where y.queue between f.name and f.name
            order by y.queue, y.rank, y.run_id
            limit :limit
        ) as counted
    ) as runs,
    (
        select y.run_id
        from holdfast_ready as y
        where y.queue between f.name and f.name and y.rank between 0 and 0
        order by y.queue, y.rank, y.run_id
        limit 1
    ) as plain,
    (
        select y.run_id
        from holdfast_ready as y
        where y.queue between f.name and f.name and y.rank <> 0
        order by y.queue, y.run_id
        limit 1
    ) as ranked
from few as f

-- name: count_ready (sqlserver)
with named (name, number) as (
    select
        min(y.queue),
        1
    from holdfast_ready as y
    union all
    select
        found.queue,
        found.number
    from (
        select
            y.queue,
            n.number + 1 as number,
            row_number() over (order by y.queue) as turn
        from named as n
        inner join holdfast_ready as y on y.queue > n.name
        where n.number < :queues
    ) as found
    where found.turn = 1
)

select
    f.name as queue,
    (select count(*) from (select top (:limit) 1 as one from holdfast_ready as y where y.queue = f.name) as counted) as runs,
    (select min(y.run_id) from holdfast_ready as y where y.queue = f.name and y.rank = 0) as plain,
    (select min(y.run_id) from holdfast_ready as y where y.queue = f.name and y.rank <> 0) as ranked
from named as f
where f.name is not null
option (maxrecursion 0)

-- name: count_running
-- Count the running runs of each queue; there are never more than the concurrency of all workers.
select
    queue,
    count(*) as runs
from holdfast_leases
group by queue

-- name: count_waits
-- Count the waiting runs of each queue, among the oldest `limit` of all.
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

-- name: insert_counters
-- Create counters that are used for the first time.
{insert holdfast_counters: name name, label name, value = 0; unless name, label}

-- name: set_counters
-- Add to counters.
update holdfast_counters as o
set value = o.value + r.count
from {rows: name name, label name, count bigint} as r
where o.name = r.name and o.label = r.label

-- name: list_counters
-- List the counters.
select
    name,
    label,
    value
from holdfast_counters
order by
    name,
    label
limit :limit
