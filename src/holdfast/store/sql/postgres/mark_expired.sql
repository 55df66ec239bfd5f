-- Note when leases were first seen expired.
with unmarked as (
    select run_id
    from holdfast_leases
    where expires_at < :now and expired_seen_at is null
    order by run_id
    limit :limit
    for update skip locked
)

update holdfast_leases as l
set expired_seen_at = :now
from unmarked
where l.run_id = unmarked.run_id
