-- Extend our own leases, which no longer count as expired; cancel requests come back with them.
with locked as (
    select
        l.run_id,
        r.expires_at
    from json_to_recordset(cast(:rows as json)) as r (run_id text, attempt integer, expires_at timestamptz)
    inner join holdfast_leases as l
        on
            l.run_id = r.run_id
            and l.attempt = r.attempt
            and l.holder = :holder
    order by l.run_id
    for no key update of l
)

update holdfast_leases as l
set
    expires_at = locked.expires_at,
    expired_seen_at = null
from locked
where l.run_id = locked.run_id
returning l.run_id, l.attempt, l.cancel_requested_at, l.cancel_reason
