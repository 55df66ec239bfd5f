-- Take leases away, if they are still as we saw them.
delete from holdfast_leases
where (run_id, attempt, expires_at) in (
    select value ->> 'run_id', value ->> 'attempt', value ->> 'expires_at' from json_each(:rows)
)
returning run_id
