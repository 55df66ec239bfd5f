-- Give up our own leases: the rows that come back are ours to move, the others are lost.
delete l
output
    deleted.run_id,
    deleted.job,
    deleted.queue,
    deleted.rank,
    deleted.[key],
    deleted.attempt,
    deleted.tries,
    deleted.takeovers,
    deleted.holder,
    deleted.started_at,
    deleted.expires_at,
    deleted.deadline_at,
    deleted.cancel_requested_at,
    deleted.cancel_reason
from openjson(:rows) with (run_id varchar(100), attempt int) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.attempt = r.attempt
where l.holder = :holder
option (force order, loop join)
