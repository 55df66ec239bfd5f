-- Number the leases of a queue that becomes limited and have no place yet.
update n
set place = n.free
from (
    select
        l.place,
        row_number() over (order by l.run_id)
        + (select coalesce(max(t.place), 0) from holdfast_leases as t where t.queue = :queue and t.place is not null) as free
    from holdfast_leases as l with (updlock, rowlock)
    where l.queue = :queue and l.place is null
) as n
