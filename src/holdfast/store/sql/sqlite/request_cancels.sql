-- Ask whoever runs these to stop; the first request counts.
update holdfast_leases
set
    cancel_reason = :reason,
    cancel_requested_at = :now
where
    cancel_requested_at is null
    and run_id in (select value from json_each(:ids))
returning run_id
