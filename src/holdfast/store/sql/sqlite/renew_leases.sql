-- Extend our own leases; cancel requests come back with them.
update holdfast_leases
set expires_at = r.value ->> 'expires_at'
from json_each(:rows) as r
where
    holdfast_leases.run_id = r.value ->> 'run_id'
    and holdfast_leases.attempt = r.value ->> 'attempt'
    and holdfast_leases.holder = :holder
returning run_id, attempt, cancel_requested_at, cancel_reason
