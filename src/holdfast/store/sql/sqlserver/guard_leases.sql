-- Which of these leases are still ours; they stay so until this transaction ends, because they are written.
update l
set holder = l.holder
output
    inserted.run_id,
    inserted.attempt
from openjson(:rows) with (run_id varchar(100), attempt int) as r
inner join holdfast_leases as l with (rowlock)
    on
        l.run_id = r.run_id collate latin1_general_100_bin2
        and l.attempt = r.attempt
where l.holder = :holder
option (force order, loop join)
