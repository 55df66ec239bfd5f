-- Give up our own leases: the rows that come back are ours to move, the others are lost.
delete from holdfast_leases
where run_id in (
    select l.run_id
    from json_each(:rows) as r
    cross join holdfast_leases as l
    where
        l.run_id = r.value ->> 'run_id'
        and l.attempt = r.value ->> 'attempt'
        and l.holder = :holder
)
returning run_id, cancel_requested_at, cancel_reason
