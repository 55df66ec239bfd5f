-- Seat the runs of a queue (* is every one) that becomes bounded.
insert into holdfast_seats (run_id, queue)
select
    p.run_id,
    p.queue
from (
    select run_id, queue from holdfast_leases
    union all
    select run_id, queue from holdfast_waits
    union all
    select run_id, queue from holdfast_ready
) as p
inner join holdfast_runs as r on r.id = p.run_id
where (p.queue = :queue or :queue = '*') and coalesce(r.kind, '') <> 'build'
on conflict do nothing
