-- Seat runs that are there while their queue becomes bounded.
insert into holdfast_seats (run_id, queue)
select
    p.run_id,
    p.queue
from (
    select run_id, queue from holdfast_leases where run_id in (select value from json_each(:ids))
    union all
    select run_id, queue from holdfast_waits where run_id in (select value from json_each(:ids))
    union all
    select run_id, queue from holdfast_ready where run_id in (select value from json_each(:ids))
) as p
where true
on conflict do nothing
