-- How much of each queue is ready, counted up to a limit, and which of it is the oldest. The queues are found one from
-- the one before it, by the index.
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
