-- Note when leases were first seen expired.
update holdfast_leases
set expired_seen_at = :now
where run_id in (
    select run_id
    from holdfast_leases
    where expires_at < :now and expired_seen_at is null
    order by run_id
    limit :limit
)
