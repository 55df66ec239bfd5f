-- Give up our own leases: the rows that come back are ours to move, the others are lost.
with given as (
    select run_id, attempt
    from json_to_recordset(cast(:rows as json)) as r (run_id text, attempt integer)
),

locked as (
    select run_id
    from holdfast_leases
    where run_id = any (array(select run_id from given)) and holder = :holder
    order by run_id
    for update
)

delete from holdfast_leases as l
using given, locked
where
    l.run_id = locked.run_id
    and l.run_id = given.run_id
    and l.attempt = given.attempt
    and l.holder = :holder
returning l.run_id, l.cancel_requested_at, l.cancel_reason
