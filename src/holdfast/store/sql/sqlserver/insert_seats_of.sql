-- Seat the runs of a queue (* is every one) that becomes bounded. Each is held still: one that ends meanwhile would
-- leave its seat behind.
insert into holdfast_seats (run_id, queue)
select
    p.run_id,
    p.queue
from (
    select run_id, queue from holdfast_leases with (updlock, rowlock)
    union all
    select run_id, queue from holdfast_waits with (updlock, rowlock)
    union all
    select run_id, queue from holdfast_ready with (updlock, rowlock)
) as p
inner join holdfast_runs as r on r.id = p.run_id
where
    (p.queue = :queue or :queue = '*')
    and coalesce(r.kind, '') <> 'build'
    and not exists (select 1 from holdfast_seats as s where s.run_id = p.run_id)
