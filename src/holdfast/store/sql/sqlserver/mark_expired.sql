-- Note when leases were first seen expired.
update l
set expired_seen_at = :now
from (
    select top (:limit) e.run_id
    from holdfast_leases as e with (readpast, readcommittedlock)
    where e.expires_at < :now and e.expired_seen_at is null
    order by e.run_id
) as chosen
inner join holdfast_leases as l with (rowlock) on l.run_id = chosen.run_id
where l.expires_at < :now and l.expired_seen_at is null
option (force order, loop join)
