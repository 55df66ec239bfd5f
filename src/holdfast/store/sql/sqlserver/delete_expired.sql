-- Take leases away, if they are still as we saw them.
delete l
output
    deleted.run_id,
    deleted.cancel_requested_at,
    deleted.cancel_reason
from openjson(:rows) with (run_id varchar(100), attempt int, expires_at datetime2(6)) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.attempt = r.attempt
        and l.expires_at = r.expires_at
option (force order, loop join)
