-- These runs may not be claimed any more: the rows that come back are ours to move.
delete y
output
    deleted.run_id,
    deleted.job,
    deleted.queue,
    deleted.rank,
    deleted.[key],
    deleted.attempt,
    deleted.tries,
    deleted.takeovers,
    deleted.key_limit,
    deleted.number,
    deleted.reserved
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_ready as y with (rowlock) on y.run_id = k.id collate latin1_general_100_bin2
option (force order, loop join)
