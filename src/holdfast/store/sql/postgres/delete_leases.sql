-- Give up our own leases: the rows that come back are ours to move, the others are lost.
with locked as (
    select l.run_id
    from json_to_recordset(cast(:rows as json)) as r (run_id text, attempt integer)
    inner join holdfast_leases as l
        on
            l.run_id = r.run_id
            and l.attempt = r.attempt
            and l.holder = :holder
    order by l.run_id
    for update of l
)

delete from holdfast_leases as l
using locked
where l.run_id = locked.run_id
returning l.run_id, l.cancel_requested_at, l.cancel_reason
