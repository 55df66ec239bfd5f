-- Who has the places of a queue.
select
    run_id,
    place
from holdfast_leases
where queue = :queue and place is not null
order by run_id
