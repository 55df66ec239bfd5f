-- Seat the runs of a queue (* is every one) that becomes bounded. Each is held still first: one that ends meanwhile
-- would leave its seat behind.
with leased as (
    select run_id, queue from holdfast_leases where queue = :queue or cast(:queue as text) = '*' order by run_id for update
),

waiting as (
    select run_id, queue from holdfast_waits where queue = :queue or cast(:queue as text) = '*' order by run_id for update
),

free as (
    select run_id, queue from holdfast_ready where queue = :queue or cast(:queue as text) = '*' order by run_id for update
)

insert into holdfast_seats (run_id, queue)
select
    p.run_id,
    p.queue
from (select * from leased union all select * from waiting union all select * from free) as p
inner join holdfast_runs as r on r.id = p.run_id
where coalesce(r.kind, '') <> 'build'
order by p.run_id
on conflict do nothing
