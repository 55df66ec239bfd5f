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
