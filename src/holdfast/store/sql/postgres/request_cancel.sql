-- Ask whoever runs it to stop; the first request counts. Whoever writes events of the run has shared its lease: taking
-- it for ourselves keeps the numbers of events in the order of the commits.
with locked as (
    select run_id
    from holdfast_leases
    where run_id = :run_id
    for update
)

update holdfast_leases
set
    cancel_reason = coalesce(cancel_reason, :reason),
    cancel_requested_at = coalesce(cancel_requested_at, :now)
where run_id = any (array(select run_id from locked))
