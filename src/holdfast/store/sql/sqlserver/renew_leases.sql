-- Extend our own leases, which no longer count as expired; cancel requests come back with them.
update l
set
    expires_at = r.expires_at,
    expired_seen_at = null
output
    inserted.run_id,
    inserted.attempt,
    inserted.cancel_requested_at,
    inserted.cancel_reason
from openjson(:rows) with (run_id varchar(100), attempt int, expires_at datetime2(6)) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.attempt = r.attempt
where l.holder = :holder
option (force order, loop join)
