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

select
    f.name as queue,
    (select count(*) from (select 1 as one from holdfast_ready as y where y.queue = f.name limit :limit) as counted) as runs,
    (select min(y.run_id) from holdfast_ready as y where y.queue = f.name and y.rank = 0) as plain,
    (select min(y.run_id) from holdfast_ready as y where y.queue = f.name and y.rank <> 0) as ranked
from few as f
