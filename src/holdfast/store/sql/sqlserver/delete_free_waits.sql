-- Of these runs, those that wait for nothing: they are ours to move.
delete w
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
    deleted.reserved,
    deleted.missing,
    deleted.due_at,
    deleted.because,
    deleted.look,
    deleted.since_at
from openjson(:ids) with (id varchar(100) '$') as k
inner join holdfast_waits as w with (rowlock) on w.run_id = k.id collate latin1_general_100_bin2
where w.missing = 0 and w.due_at is null and w.[key] is null and w.errand is null
option (force order, loop join)
