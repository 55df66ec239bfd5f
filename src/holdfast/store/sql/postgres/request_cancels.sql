-- Ask whoever runs these to stop; the first request counts.
with locked as (
    select run_id
    from holdfast_leases
    where run_id = any (array(select json_array_elements_text(cast(:ids as json))))
    order by run_id
    for update
)

update holdfast_leases
set
    cancel_reason = :reason,
    cancel_requested_at = :now
where
    cancel_requested_at is null
    and run_id = any (array(select run_id from locked))
returning run_id
