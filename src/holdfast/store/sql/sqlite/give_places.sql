-- Number the leases of a queue that becomes limited and have no place yet.
update holdfast_leases
set place = n.place
from (
    select
        run_id,
        row_number() over (order by run_id)
        + (select coalesce(max(place), 0) from holdfast_leases where queue = :queue and place is not null) as place
    from holdfast_leases
    where queue = :queue and place is null
) as n
where holdfast_leases.run_id = n.run_id
