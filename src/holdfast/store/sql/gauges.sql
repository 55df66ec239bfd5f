-- Gauges ("samples") of how much is ready, running and waiting, over time; and the counters.

-- name: insert_sample
-- Take this minute's sample, unless someone has.
insert into holdfast_samples (minute_at, waiting, running, oldest)
values (:minute_at, :waiting, :running, :oldest)
on conflict do nothing

-- name: insert_sample (sqlserver)
insert into holdfast_samples (minute_at, waiting, running, oldest)
select
    cast(:minute_at as datetime2(6)),
    cast(:waiting as bigint),
    cast(:running as bigint),
    cast(:oldest as bigint)
where not exists (select 1 from holdfast_samples where minute_at = :minute_at)

-- name: find_samples
-- The newest samples since then.
select
    minute_at,
    waiting,
    running,
    oldest
from holdfast_samples
where minute_at >= :since
order by minute_at desc
limit :limit

-- name: delete_old_samples
-- Old samples are no longer kept.
delete from holdfast_samples
where minute_at < :before

-- name: count_ready
-- How much of each queue is ready, counted up to a limit, and which of it is the oldest. The queues are found one from
-- the one before it, by the index.
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

-- Between, not equal: so the order is one that only the queue's own index has.
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
-- How many runs of each queue are running: never more than the workers have places.
select
    queue,
    count(*) as runs
from holdfast_leases
group by queue

-- name: count_waits
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

-- name: insert_counters
-- Counters that no one has used yet begin at nothing.
{insert holdfast_counters: name name, label name, value = 0; unless name, label}

-- name: set_counters
-- Count so many more.
update holdfast_counters as o
set value = o.value + r.count
from {rows: name name, label name, count bigint} as r
where o.name = r.name and o.label = r.label

-- name: list_counters
-- What no row proves, counted.
select
    name,
    label,
    value
from holdfast_counters
order by
    name,
    label
limit :limit
