-- Number the leases of a queue that becomes limited and have no place yet.
with locked as (
    select run_id from holdfast_leases where queue = :queue and place is null order by run_id for update
),

numbered as (
    select
        run_id,
        row_number() over (order by run_id)
        + (select coalesce(max(place), 0) from holdfast_leases where queue = :queue and place is not null) as place
    from locked
)

update holdfast_leases as l
set place = n.place
from numbered as n
where l.run_id = n.run_id
