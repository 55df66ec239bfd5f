-- Extend our own leases, which no longer count as expired; cancel requests come back with them.
update holdfast_leases
set
    expires_at = r.value ->> 'expires_at',
    expired_seen_at = null
from json_each(:rows) as r
where
    holdfast_leases.run_id = r.value ->> 'run_id'
    and holdfast_leases.attempt = r.value ->> 'attempt'
    and holdfast_leases.holder = :holder
returning run_id, attempt, cancel_requested_at, cancel_reason
