-- Ask whoever runs these to stop; the first request counts.
update l
set
    cancel_reason = :reason,
    cancel_requested_at = :now
output inserted.run_id
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_leases as l with (rowlock) on l.run_id = k.id collate latin1_general_100_bin2
where l.cancel_requested_at is null
option (force order, loop join)
