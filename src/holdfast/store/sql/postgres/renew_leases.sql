-- Extend our own leases; cancel requests come back with them.
with given as (
    select run_id, attempt, expires_at
    from json_to_recordset(cast(:rows as json)) as r (run_id text, attempt integer, expires_at timestamptz)
),

locked as (
    select run_id
    from holdfast_leases
    where run_id = any (array(select run_id from given)) and holder = :holder
    order by run_id
    for no key update
)

update holdfast_leases as l
set expires_at = given.expires_at
from given, locked
where
    l.run_id = locked.run_id
    and l.run_id = given.run_id
    and l.attempt = given.attempt
    and l.holder = :holder
returning l.run_id, l.attempt, l.cancel_requested_at, l.cancel_reason
