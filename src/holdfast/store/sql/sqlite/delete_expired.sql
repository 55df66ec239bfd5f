-- Take leases away, if they are still as we saw them.
delete from holdfast_leases
where run_id in (
    select l.run_id
    from json_each(:rows) as r
    cross join holdfast_leases as l
    where
        l.run_id = r.value ->> 'run_id'
        and l.attempt = r.value ->> 'attempt'
        and l.expires_at = r.value ->> 'expires_at'
)
returning run_id, cancel_requested_at, cancel_reason
