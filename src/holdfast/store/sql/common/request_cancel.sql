-- Ask whoever runs it to stop; the first request counts.
update holdfast_leases
set
    cancel_reason = coalesce(cancel_reason, :reason),
    cancel_requested_at = coalesce(cancel_requested_at, :now)
where run_id = :run_id
