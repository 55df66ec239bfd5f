-- Seat runs that are there while their queue becomes bounded. Each is held still first: one that ends meanwhile would
-- leave its seat behind.
with leased as (
    select run_id, queue from holdfast_leases where run_id = any (array(select json_array_elements_text(cast(:ids as json)))) order by run_id for update
),

waiting as (
    select run_id, queue from holdfast_waits where run_id = any (array(select json_array_elements_text(cast(:ids as json)))) order by run_id for update
),

free as (
    select run_id, queue from holdfast_ready where run_id = any (array(select json_array_elements_text(cast(:ids as json)))) order by run_id for update
)

insert into holdfast_seats (run_id, queue)
select
    p.run_id,
    p.queue
from (select * from leased union all select * from waiting union all select * from free) as p
order by p.run_id
on conflict do nothing
